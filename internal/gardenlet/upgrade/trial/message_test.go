package trial

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		output, want string
	}{
		"no output":  {"", ""},
		"other text": {"{\"level\":\"info\"}\nstarting\n", ""},
		"the last error": {
			"{\"level\":\"info\"}\nerror: the first\nerror: logLevel: Unsupported value: \"loud\"\n", `: error: logLevel: Unsupported value: "loud"`,
		},
		"several errors": {"error: several things are wrong:\n- a: Required value\n- b: Forbidden\n", ": error: several things are wrong: a: Required value; b: Forbidden"},
		"a panic":        {"panic: nil map\n\ngoroutine 1 [running]:\nmain.main()\n", ": panic: nil map"},
		"a password":     {"error: login with password=hunter2 failed", ": error: login with password=*** failed"},
		"a header":       {"error: Authorization: Bearer abc.def was refused", ": error: Authorization: *** was refused"},
		"a field":        {`error: {"token": "abc", "a": 1}`, `: error: {"token": "***", "a": 1}`},
		"a URL":          {"error: get https://admin:pw@garden.example.com/api", ": error: get https://***garden.example.com/api"},
		"a bootstrap token": {
			"error: 07401b.f395accd246ae52d is refused", ": error: *** is refused",
		},
		"a JSON web token": {"error: eyJhbGciOi.eyJzdWIi.c2ln is refused", ": error: *** is refused"},
		"encoded data":     {"error: decode " + strings.Repeat("Zm9v", 20) + "==: short", ": error: decode ***: short"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Ended(&corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: tc.output})
			if got != "with exit code 1 (Error)"+tc.want {
				t.Errorf("Ended() = %q, want that with %q", got, tc.want)
			}
		})
	}
	if got := Ended(nil); got != "" {
		t.Errorf("Ended() of a container that has not ended = %q", got)
	}
	if got := Ended(&corev1.ContainerStateTerminated{Message: "error: " + strings.Repeat("long ", 1000)}); len(got) > 400 {
		t.Errorf("Ended() has %d bytes", len(got))
	}
}
