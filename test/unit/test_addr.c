#include "lib/tap.h"
#include "util/addr.h"

static const struct {
    const char *text, *back; /* NULL: refused */
} addresses[] = {
    {"10.0.0.5", "10.0.0.5"},
    {"0.0.0.0", "0.0.0.0"},
    {"255.255.255.255", "255.255.255.255"},
    {"::", "::"},
    {"::1", "::1"},
    {"1::", "1::"},
    {"FE80::1", "fe80::1"},
    {"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
    {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
    {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
    {"::ffff:10.0.0.5", "10.0.0.5"},
    {"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
    {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
    {"", NULL},
    {"10.0.0", NULL},
    {"10.0.0.256", NULL},
    {"10.0.0.05", NULL},
    {"10.0.0.5 ", NULL},
    {"10.0.0.5.1", NULL},
    {"0x7f.1", NULL},
    {"1:2:3:4:5:6:7", NULL},
    {"1:2:3:4:5:6:7:8:9", NULL},
    {"1::2::3", NULL},
    {"1:2:3:4:5:6:7::8", NULL},
    {":::", NULL},
    {":1", NULL},
    {"1:", NULL},
    {"12345::", NULL},
    {"fe80::1%eth0", NULL},
    {"::1.2.3", NULL},
    {"1:2:3:4:5:6:7:1.2.3.4", NULL},
    {"localhost", NULL},
};

static const struct {
    const char *net, *in, *out;
} nets[] = {
    {"10.0.0.0/8", "10.255.0.1", "11.0.0.1"},
    {"192.168.1.0/30", "192.168.1.3", "192.168.1.4"},
    {"10.1.2.3", "10.1.2.3", "10.1.2.2"},
    {"0.0.0.0/0", "1.2.3.4", "::1"},
    {"::/0", "1.2.3.4", NULL},
    {"fd00::/9", "fd7f::1", "fd80::1"},
    {"::1", "::1", "::2"},
    {"::ffff:10.0.0.0/8", "10.9.9.9", "11.0.0.0"},
};

static const char *const bad_nets[] = {"",
                                       "10.0.0.0/33",
                                       "10.0.0.0/",
                                       "10.0.0.0/8x",
                                       "10.0.0.1/8",
                                       "10.0.0.0/-1",
                                       "fd00::/129",
                                       "fd00::1/64",
                                       "10.0.0/8",
                                       "all",
                                       "10.0.0.0/08888",
                                       "/8",
                                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

int main(void)
{
    char text[EL_ADDR_TEXT_MAX];
    struct el_addr a = {{0}, 0};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int good = el_addr_parse(addresses[i].text, a.ip);
        is_str(good ? el_addr_text(&a, text) : NULL, addresses[i].back, addresses[i].text);
    }
    a.port = 65535;
    el_addr_parse("1.2.3.4", a.ip);
    is_str(el_addr_text(&a, text), "1.2.3.4:65535", "with a port");
    el_addr_parse("1111:2222:3333:4444:5555:6666:7777:8888", a.ip);
    is_str(el_addr_text(&a, text), "[1111:2222:3333:4444:5555:6666:7777:8888]:65535", "the longest");
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        struct el_cidr c;
        uint8_t ip[16];
        int good = el_cidr_parse(nets[i].net, &c, NULL) == 0;
        good = good && el_addr_parse(nets[i].in, ip) && el_cidr_has(&c, ip);
        ok(good && (!nets[i].out || (el_addr_parse(nets[i].out, ip) && !el_cidr_has(&c, ip))), nets[i].net);
    }
    for (size_t i = 0; i < sizeof bad_nets / sizeof *bad_nets; i++) {
        struct el_cidr c;
        struct el_err e = {0};
        ok(el_cidr_parse(bad_nets[i], &c, &e) == -1 && e.status == EL_EXIT_USAGE && e.text[0], e.text);
    }
    uint8_t ip[16];
    ok(el_addr_parse("127.9.9.9", ip) && el_addr_is_loopback(ip), "loopback, v4");
    ok(el_addr_parse("::1", ip) && el_addr_is_loopback(ip) && !el_addr_is_any(ip), "loopback, v6");
    ok(el_addr_parse("0.0.0.0", ip) && el_addr_is_any(ip), "any, v4");
    ok(el_addr_parse("::", ip) && el_addr_is_any(ip) && !el_addr_is_loopback(ip), "any, v6");
    return done();
}
