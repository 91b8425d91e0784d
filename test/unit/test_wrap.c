#include "util/wrap.h"
#include "lib/tap.h"

static void wrapped(const char *text, unsigned columns, unsigned first, unsigned hang, const char *want)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    el_wrap(&out, text, strlen(text), columns, first, hang);
    is_str(el_buf_cstr(&out), want, text[0] ? text : "nothing");
    el_buf_free(&out);
}

static void cut(const char *text, unsigned columns, const char *want)
{
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    el_cut(&out, text, strlen(text), columns);
    is_str(el_buf_cstr(&out), want, text[0] ? text : "nothing");
    el_buf_free(&out);
}

int main(void)
{
    wrapped("", 20, 2, 4, "  ");
    wrapped("no limit  and all its blanks", 0, 1, 4, " no limit  and all its blanks");
    wrapped("one two three four", 9, 0, 2, "one two\n  three\n  four");
    wrapped("exactly nine", 12, 0, 2, "exactly nine");
    wrapped("exactly nine", 11, 0, 2, "exactly\n  nine");
    wrapped("see /a/very/long/path/of/somebody now", 12, 2, 4, "  see\n    /a/very/long/path/of/somebody\n    now");
    wrapped("/a/very/long/path", 8, 2, 4, "  /a/very/long/path");
    wrapped("a  b", 20, 0, 0, "a  b");
    wrapped("\033[1;31mred word\033[0m", 8, 0, 0, "\033[1;31mred word\033[0m");
    wrapped("日本 日本", 8, 0, 1, "日本\n 日本");
    wrapped("\xff\xfe x", 4, 0, 0, "\xff\xfe x");
    cut("", 5, "");
    cut("abcdef", 6, "abcdef");
    cut("abcdef", 5, "abcd…");
    cut("abcdef", 0, "abcdef");
    cut("日本語", 5, "日本…");
    cut("e\xcc\x81"
        "abc",
        3,
        "e\xcc\x81"
        "a…");
    struct el_buf out = EL_BUF_INIT(NULL, 0);
    el_cut_front(&out, "a日本語", strlen("a日本語"), 5);
    el_cut_front(&out, "abc", 3, 3);
    el_cut_front(&out, "abcd", 4, 3);
    is_str(el_buf_cstr(&out), "…本語abc…cd", "the end is kept");
    el_buf_free(&out);
    is_num((long)el_columns("🏖️ é", strlen("🏖️ é")), 4, "a picture is two columns wide, its selector none");
    return done();
}
