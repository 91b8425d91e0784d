/* Completion scripts.  Each shell gets its data from the rows and a fixed part that walks the words typed so far: what
 * stands behind the script's name belongs to the script, so only files are offered there. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "util/opt.h"

static void put_choices(struct el_buf *out, const char *choices)
{
    for (const char *p = choices; *p; p++)
        el_buf_put(out, *p == '|' ? " " : p, 1);
}

/* A sentence inside single quotes; zsh also wants its own marks escaped. */
static void put_quoted(struct el_buf *out, const char *text, const char *escape)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            el_buf_puts(out, "'\\''");
        else if (strchr(escape, *p))
            el_buf_printf(out, "\\%c", *p);
        else
            el_buf_put(out, p, 1);
    }
}

static bool is_path(const struct opt_row *row)
{
    return row->arg && (strcmp(row->arg, "DIR") == 0 || strcmp(row->arg, "FILE") == 0);
}

/* --- bash --------------------------------------------------------------------------------------------------------- */

static const char bash_walk[] =
    "_elrun() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd=@MAIN@ i=1 word option\n"
    "    COMPREPLY=()\n"
    "    # bash splits --name=value at the sign.\n"
    "    if [[ $cur == = ]]; then option=$prev cur=\n"
    "    elif [[ $prev == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    elif [[ $prev == -* ]]; then option=$prev; fi\n"
    "    if ((COMP_CWORD > 1)) && [[ \" @COMMANDS@ \" == *\" ${COMP_WORDS[1]} \"* ]]; then cmd=${COMP_WORDS[1]} i=2; "
    "fi\n"
    "    _elrun_$cmd\n"
    "    for ((; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == -- || $word != -* ]]; then\n"
    "            [[ -n $words && $word != -- ]] || compopt -o default 2>/dev/null\n"
    "            return\n"
    "        fi\n"
    "        if [[ ${COMP_WORDS[i+1]} == = ]]; then ((i += 2))\n"
    "        elif [[ \" $valued \" == *\" ${word//_/-} \"* ]]; then ((i++)); fi\n"
    "    done\n"
    "    if [[ -n $option && \" $valued \" == *\" ${option//_/-} \"* ]]; then\n"
    "        _elrun_values \"$cmd\" \"${option//_/-}\" || { compopt -o default 2>/dev/null; return; }\n"
    "        COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
    "    elif [[ $cur == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
    "    elif [[ -n $words ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "    else\n"
    "        ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W \"@COMMANDS@\" -- \"$cur\"))\n"
    "        compopt -o default 2>/dev/null\n"
    "        [[ -z $cur ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
    "    fi\n"
    "}\n"
    "complete -F _elrun elrun\n";

static void bash_command(const struct opt_command *c, struct el_buf *out)
{
    size_t n = c->options ? c->options->n : 0;
    el_buf_printf(out, "_elrun_%s() {\n    options='", c->name);
    for (size_t i = 0; i < n; i++) {
        el_buf_printf(out, "%s--%s", i ? " " : "", c->options->rows[i].name);
        if (c->options->rows[i].letter)
            el_buf_printf(out, " -%c", c->options->rows[i].letter);
    }
    el_buf_puts(out, "'\n    valued='");
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        const struct opt_row *row = &c->options->rows[i];
        if (!row->arg)
            continue;
        el_buf_printf(out, "%s--%s", first ? "" : " ", row->name);
        if (row->letter)
            el_buf_printf(out, " -%c", row->letter);
        first = false;
    }
    el_buf_puts(out, "'\n    words='");
    put_choices(out, c->words ? c->words : "");
    el_buf_puts(out, "'\n}\n");
}

static void bash_values(const struct opt_command *commands, size_t n, struct el_buf *out)
{
    el_buf_puts(out, "_elrun_values() {\n    case \"$1 $2\" in\n");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; commands[i].options && j < commands[i].options->n; j++) {
            const struct opt_row *row = &commands[i].options->rows[j];
            if (!row->arg || is_path(row))
                continue;
            el_buf_printf(out, "    '%s --%s'", commands[i].name, row->name);
            if (row->letter)
                el_buf_printf(out, "|'%s -%c'", commands[i].name, row->letter);
            el_buf_puts(out, ") values='");
            put_choices(out, row->choices ? row->choices : "");
            el_buf_puts(out, "' ;;\n");
        }
    el_buf_puts(out, "    *) return 1 ;;\n    esac\n}\n");
}

static void put_command_names(const struct opt_command *commands, size_t n, struct el_buf *out)
{
    for (size_t i = 0; i < n; i++)
        el_buf_printf(out, "%s%s", i ? " " : "", commands[i].name);
}

/* The fixed part, with @COMMANDS@ and @MAIN@ filled in. */
static void put_walk(const char *walk, const struct opt_command *commands, size_t n, const struct opt_command *main,
                     struct el_buf *out)
{
    while (*walk) {
        if (strncmp(walk, "@COMMANDS@", 10) == 0) {
            put_command_names(commands, n, out);
            walk += 10;
        } else if (strncmp(walk, "@MAIN@", 6) == 0) {
            el_buf_puts(out, main->name);
            walk += 6;
        } else {
            el_buf_put(out, walk++, 1);
        }
    }
}

static void complete_bash(const struct opt_command *commands, size_t n, const struct opt_command *main,
                          struct el_buf *out)
{
    el_buf_puts(out, "# bash completion for elrun; made by `elrun completion bash`\n");
    for (size_t i = 0; i < n; i++)
        bash_command(&commands[i], out);
    bash_values(commands, n, out);
    put_walk(bash_walk, commands, n, main, out);
}

/* --- zsh ---------------------------------------------------------------------------------------------------------- */

static void zsh_row(const struct opt_row *row, struct el_buf *out)
{
    el_buf_puts(out, " \\\n        ");
    if (row->letter)
        el_buf_printf(out, "'(-%c --%s)'{-%c%s,--%s%s}", row->letter, row->name, row->letter, row->arg ? "+" : "",
                      row->name, row->arg ? "=" : "");
    else
        el_buf_printf(out, "--%s%s", row->name, row->arg ? "=" : "");
    el_buf_puts(out, "'[");
    put_quoted(out, row->help, "[]:\\");
    el_buf_puts(out, "]");
    if (row->arg) {
        el_buf_puts(out, ":");
        put_quoted(out, row->arg, "[]:\\");
        el_buf_puts(out, ":");
        if (row->choices) {
            el_buf_puts(out, "(");
            put_choices(out, row->choices);
            el_buf_puts(out, ")");
        } else {
            el_buf_puts(out, is_path(row) ? "_files" : " ");
        }
    }
    el_buf_puts(out, "'");
}

static void zsh_command(const struct opt_command *c, struct el_buf *out)
{
    el_buf_printf(out, "_elrun_%s() {\n    _arguments -s -S -A '-*'", c->name);
    for (size_t i = 0; c->options && i < c->options->n; i++)
        zsh_row(&c->options->rows[i], out);
    if (!c->words) {
        el_buf_puts(out, " \\\n        '1:script:_files' '*:: :_files'\n}\n");
    } else if (*c->words) {
        el_buf_puts(out, " \\\n        '1:word:(");
        put_choices(out, c->words);
        el_buf_puts(out, ")'\n}\n");
    } else {
        el_buf_puts(out, "\n}\n");
    }
}

static void complete_zsh(const struct opt_command *commands, size_t n, const struct opt_command *main,
                         struct el_buf *out)
{
    el_buf_puts(out, "#compdef elrun\n# zsh completion for elrun; made by `elrun completion zsh`\n");
    for (size_t i = 0; i < n; i++)
        zsh_command(&commands[i], out);
    el_buf_puts(out, "_elrun() {\n    local -a names=(");
    for (size_t i = 0; i < n; i++) {
        el_buf_printf(out, "\n        '%s:", commands[i].name);
        put_quoted(out, commands[i].summary, ":\\");
        el_buf_puts(out, "'");
    }
    el_buf_puts(out, ")\n    if ((CURRENT > 2)) && (( $+functions[_elrun_$words[2]] )); then\n"
                     "        local name=$words[2]\n"
                     "        shift words; ((CURRENT--))\n"
                     "        _elrun_$name\n"
                     "        return\n"
                     "    fi\n"
                     "    ((CURRENT > 2)) || [[ $PREFIX == -* ]] || _describe -t commands command names\n");
    el_buf_printf(
        out, "    _elrun_%s\n}\nif [[ $funcstack[1] == _elrun ]]; then _elrun \"$@\"; else compdef _elrun elrun; fi\n",
        main->name);
}

/* --- fish --------------------------------------------------------------------------------------------------------- */

/* Prints the command that the words before the cursor belong to; nothing once an operand has been given. */
static const char fish_walk[] = "function __elrun_command\n"
                                "    set -l words (commandline -opc)\n"
                                "    set -e words[1]\n"
                                "    set -l name @MAIN@\n"
                                "    if contains -- \"$words[1]\" @COMMANDS@\n"
                                "        set name $words[1]\n"
                                "        set -e words[1]\n"
                                "    end\n"
                                "    set -l skip 0\n"
                                "    for word in $words\n"
                                "        if test $skip = 1\n"
                                "            set skip 0\n"
                                "        else if contains -- $name:$word $__elrun_valued\n"
                                "            set skip 1\n"
                                "        else if test \"$word\" = --; or not string match -q -- '-*' \"$word\"\n"
                                "            return\n"
                                "        end\n"
                                "    end\n"
                                "    echo $name\n"
                                "end\n"
                                "function __elrun_in\n"
                                "    test \"$(__elrun_command)\" = $argv[1]\n"
                                "end\n"
                                "function __elrun_first\n"
                                "    test (count (commandline -opc)) = 1\n"
                                "end\n";

static void fish_row(const struct opt_command *c, const struct opt_row *row, struct el_buf *out)
{
    el_buf_printf(out, "complete -c elrun -n '__elrun_in %s' -l %s", c->name, row->name);
    if (row->letter)
        el_buf_printf(out, " -s %c", row->letter);
    if (row->choices && row->arg) {
        el_buf_puts(out, " -x -a '");
        put_choices(out, row->choices);
        el_buf_puts(out, "'");
    } else if (row->arg) {
        el_buf_puts(out, is_path(row) ? " -r -F" : " -x");
    }
    el_buf_puts(out, " -d '");
    for (const char *p = row->help; *p; p++)
        el_buf_printf(out, *p == '\'' || *p == '\\' ? "\\%c" : "%c", *p);
    el_buf_puts(out, "'\n");
}

static void complete_fish(const struct opt_command *commands, size_t n, const struct opt_command *main,
                          struct el_buf *out)
{
    el_buf_puts(out, "# fish completion for elrun; made by `elrun completion fish`\nset -g __elrun_valued");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; commands[i].options && j < commands[i].options->n; j++) {
            const struct opt_row *row = &commands[i].options->rows[j];
            if (row->arg)
                el_buf_printf(out, " %s:--%s", commands[i].name, row->name);
            if (row->arg && row->letter)
                el_buf_printf(out, " %s:-%c", commands[i].name, row->letter);
        }
    el_buf_puts(out, "\n");
    put_walk(fish_walk, commands, n, main, out);
    for (size_t i = 0; i < n; i++) {
        const struct opt_command *c = &commands[i];
        el_buf_printf(out, "complete -c elrun -n __elrun_first -a %s -d '%s'\n", c->name, c->summary);
        for (size_t j = 0; c->options && j < c->options->n; j++)
            fish_row(c, &c->options->rows[j], out);
        if (!c->words)
            continue;
        el_buf_printf(out, "complete -c elrun -n '__elrun_in %s' -f -a '", c->name);
        put_choices(out, c->words);
        el_buf_puts(out, "'\n");
    }
}

int opt_complete(const char *shell, const struct opt_command *commands, size_t n, const struct opt_command *main,
                 struct el_buf *out)
{
    static void (*const shells[])(const struct opt_command *, size_t, const struct opt_command *,
                                  struct el_buf *) = {complete_bash, complete_zsh, complete_fish};
    int which = opt_choice("bash|zsh|fish", shell, strlen(shell));
    assert(n > 0 && main);
    if (which < 0)
        return -1;
    shells[which](commands, n, main, out);
    return 0;
}
