package destination

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://issuer.example.com":                                  "",
		"https://issuer.example.com:8443/realms/a":                    "",
		"https://xn--bcher-kva.xn--p1ai":                              "",
		"https://10.1.2.3":                                            "",
		"https://[2001:db8::1]:443":                                   "",
		"https://login.garden":                                        "",
		"not a URL":                                                   "",
		"https://169.254.169.254/latest":                              "metadata",
		"https://169.254.1.1":                                         "link-local",
		"https://[fe80::1%25eth0]":                                    "link-local",
		"https://[fd00:ec2::254]":                                     "metadata",
		"https://[FD00:0EC2:0:0::254]:443":                            "metadata",
		"https://[::ffff:169.254.169.254]":                            "metadata",
		"https://[64:ff9b::a9fe:a9fe]":                                "metadata",
		"https://[2002:7f00:1::]":                                     "itself",
		"https://[64:ff9b::808:808]":                                  "",
		"https://kubernetes.default.ｓｖｃ":                              "ASCII",
		"https://100.100.100.200":                                     "metadata",
		"https://metadata.google.internal./x":                         "metadata",
		"https://127.0.0.1:10250":                                     "itself",
		"https://[::1]":                                               "itself",
		"https://0.0.0.0":                                             "itself",
		"https://localhost:443":                                       "itself",
		"https://x.LOCALHOST":                                         "itself",
		"https://2852039166":                                          "usual form",
		"https://127.1":                                               "usual form",
		"https://kubernetes":                                          "Service",
		"https://kube-apiserver.shoot--dev--first":                    "Service",
		"https://kube-apiserver.shoot--dev--first.svc":                "Service",
		"https://kube-apiserver.shoot--d--f.svc.cluster.local./":      "Service",
		"https://Vpn-Seed-Server.Shoot--Dev--First.SVC.cluster.LOCAL": "Service",
	} {
		errs := URL(raw, field.NewPath("issuer"))
		switch {
		case want == "" && len(errs) > 0:
			t.Errorf("URL(%q) = %v, want no error", raw, errs)
		case want != "" && (len(errs) != 1 || errs[0].Field != "issuer" || !strings.Contains(errs[0].Detail, want)):
			t.Errorf("URL(%q) = %v, want an error of issuer with %q", raw, errs, want)
		}
	}
}

func TestTranslated(t *testing.T) {
	got := Translated([]string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "x"})
	want := []string{
		"64:ff9b::a00:0/104", "64:ff9b:1::a00:0/104", "2002:a00::/24", "64:ff9b::c000:201/128", "64:ff9b:1::c000:201/128", "2002:c000:201::/48",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Translated() (-want +got):\n%s", diff)
	}
}

func TestOutside(t *testing.T) {
	blocked := Outside("10.1.0.0/16", "2002::/16", "2001:db8::/32")
	for host, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::a01:203": true, "2001:db8::1": true, "2002:808:808::1": true,
		"10.2.2.3": false, "64:ff9b::a02:203": false, "2001:db9::1": false, "example.com": false,
	} {
		if reason := blocked(host); reason != "" != want {
			t.Errorf("%s: %q, want a reason: %v", host, reason, want)
		}
	}
}

func TestPublic(t *testing.T) {
	blocked := Public("10.1.0.0/16", "fd01::/16")
	for host, want := range map[string]string{
		"8.8.8.8": "", "2001:db8::1": "", "64:ff9b::808:808": "", "api.example.com": "", "10.1.2.3": "", "fd01::1": "", "64:ff9b::a01:203": "", "::ffff:10.1.2.3": "",
		"10.2.2.3": "private", "172.16.0.1": "private", "192.168.1.1": "private", "100.64.0.1": "private", "fd02::1": "private", "198.18.0.1": "private",
		"::ffff:10.2.2.3": "private", "64:ff9b::a02:203": "private", "2002:c0a8:101::1": "private", "fec0::1": "private", "fd02::1%eth0": "private",
		"127.0.0.1": "itself", "169.254.169.254": "metadata", "kubernetes.default.svc": "Service", "fd00:ec2::254": "metadata",
	} {
		if reason := blocked(host); (reason == "") != (want == "") || !strings.Contains(reason, want) {
			t.Errorf("%s: %q, want %q", host, reason, want)
		}
	}
	// What is no address of the outside is never one.
	for _, host := range []string{"127.0.0.1", "169.254.169.254", "::1"} {
		if Public("0.0.0.0/0", "::/0")(host) == "" {
			t.Errorf("%s is allowed", host)
		}
	}
}
