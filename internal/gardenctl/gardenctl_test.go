package gardenctl

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func TestGoals(t *testing.T) {
	change := func(s *corev1beta1.Shoot, how ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		for _, h := range how {
			h(s)
		}
		return s
	}
	pending := func(s *corev1beta1.Shoot) { s.Annotations[constants.GardenerOperation] = "maintain" }
	newer := func(s *corev1beta1.Shoot) { s.Generation++ }
	const yes, notYet, never = "yes", "not yet", "never"
	for name, tc := range map[string]struct {
		goal  string
		shoot *corev1beta1.Shoot
		want  string
	}{
		"healthy":                               {"healthy", running(), yes},
		"healthy, but a condition is missing":   {"healthy", change(running(), func(s *corev1beta1.Shoot) { s.Status.Conditions = nil }), notYet},
		"healthy, but a condition is not True":  {"healthy", change(running(), func(s *corev1beta1.Shoot) { s.Status.Conditions[0].Status = "Progressing" }), notYet},
		"healthy, but gone":                     {"healthy", nil, never},
		"reconciled":                            {"reconciled", change(running(), func(s *corev1beta1.Shoot) { s.Status.Conditions = nil }), yes},
		"reconciled, but new":                   {"reconciled", created(), notYet},
		"reconciled, but changed":               {"reconciled", change(running(), newer), notYet},
		"reconciled, but an operation pending":  {"reconciled", change(running(), pending), notYet},
		"reconciled, but failed":                {"reconciled", failing(), never},
		"reconciled, failed before its change":  {"reconciled", change(failing(), newer), notYet},
		"reconciled, but deleted":               {"reconciled", deleting(), never},
		"reconciled, but under way":             {"reconciled", change(running(), func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = "Processing" }), notYet},
		"deleted":                               {"deleted", nil, yes},
		"deleted, but under way":                {"deleted", deleting(), notYet},
		"deleted, but no deletion requested":    {"deleted", running(), notYet},
		"deleted, failed before it was deleted": {"deleted", change(failing(), newer, func(s *corev1beta1.Shoot) { s.DeletionTimestamp = new(before(0)) }), notYet},
		"deleted, but failed":                   {"deleted", change(deleting(), func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = "Failed" }), never},
		"condition":                             {"condition=APIServerAvailable", running(), yes},
		"condition, not so":                     {"condition=ControlPlaneHealthy", failing(), notYet},
		"condition, another status":             {"condition=ControlPlaneHealthy=false", failing(), yes},
		"condition, absent":                     {"condition=Nonsense", running(), notYet},
		"constraint":                            {"condition=HibernationPossible", running(), yes},
		"condition, gone":                       {"condition=Nonsense", nil, never},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := parseGoal(tc.goal)
			if err != nil {
				t.Fatal(err)
			}
			got := notYet
			var lost *hopeless
			switch err := g.reached(tc.shoot); {
			case err == nil:
				got = yes
			case errors.As(err, &lost):
				got = never
			}
			if got != tc.want {
				t.Errorf("reached is %q, want %q", got, tc.want)
			}
		})
	}
	for _, bad := range []string{"", "happy", "condition", "condition="} {
		if _, err := parseGoal(bad); err == nil {
			t.Errorf("goal %q is accepted", bad)
		}
	}
	if err := deleted("other").reached(deleting()); err != nil {
		t.Errorf("a new shoot of the same name is waited for: %v", err)
	}
}

func TestShootArgument(t *testing.T) {
	for name, tc := range map[string]struct {
		args   string
		target string
		want   string
	}{
		"a word and a name":             {args: "shoot a", want: "a"},
		"a word and a name in one":      {args: "shoot/a", want: "a"},
		"the plural":                    {args: "shoots a", want: "a"},
		"a word, and the target":        {args: "shoot", target: "b", want: "b"},
		"a name goes before the target": {args: "shoot a", target: "b", want: "a"},
		"without the word":              {args: "a", want: "a"},
		"nothing":                       {},
		"nothing, and the target":       {target: "b", want: "b"},
		"another kind":                  {args: "seed/a"},
		"another kind, and a name":      {args: "seed a"},
		"two":                           {args: "shoot a b"},
		"one more":                      {args: "shoot/a b"},
		"an empty name":                 {args: "shoot/", target: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&cli{}).shootArgument(strings.Fields(tc.args), Target{Shoot: tc.target})
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("shootArgument() is %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	if got, err := (&cli{}).shootArgument([]string{"shoot", ""}, Target{Shoot: "b"}); err == nil {
		t.Errorf("an empty argument means %q", got)
	}
}

func TestComponentOf(t *testing.T) {
	owned := func(pod, kind, owner string, labels map[string]string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: pod, Labels: labels, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}},
		}}
	}
	got := map[string][]string{}
	for name, pods := range byComponent([]corev1.Pod{
		owned("kube-apiserver-5d-b", "ReplicaSet", "kube-apiserver-5d", map[string]string{"pod-template-hash": "5d"}),
		owned("kube-apiserver-5d-a", "ReplicaSet", "kube-apiserver-5d", map[string]string{"pod-template-hash": "5d"}),
		owned("etcd-main-0", "StatefulSet", "etcd-main", nil),
		{ObjectMeta: metav1.ObjectMeta{Name: "alone"}},
	}) {
		for _, pod := range pods {
			got[name] = append(got[name], pod.Name)
		}
	}
	want := map[string][]string{"kube-apiserver": {"kube-apiserver-5d-a", "kube-apiserver-5d-b"}, "etcd-main": {"etcd-main-0"}, "alone": {"alone"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("byComponent() (-want +got):\n%s", diff)
	}
}

// A credential is taken from the cache while enough of its validity is left.
func TestFresh(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now)
	c := &cli{Options: Options{Clock: clock, CacheDir: t.TempDir()}}
	file := filepath.Join(c.CacheDir, "credentials", "a.json")
	until := metav1.NewTime(now.Add(time.Hour))
	credential := &clientauthenticationv1.ExecCredential{Status: &clientauthenticationv1.ExecCredentialStatus{ExpirationTimestamp: &until, ClientKeyData: "key"}}
	if err := c.keep(file, credential); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; only the user may read it", info.Mode(), err)
	}
	for after, want := range map[time.Duration]bool{0: true, 47 * time.Minute: true, 49 * time.Minute: false, 2 * time.Hour: false} {
		clock.SetTime(now.Add(after))
		if got := c.fresh(file); (got != nil) != want || want && got.Status.ClientKeyData != "key" {
			t.Errorf("after %s: fresh() is %v, want one: %t", after, got, want)
		}
	}
	if err := os.WriteFile(file, []byte(`{"credential":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.fresh(file); got != nil {
		t.Errorf("an invalid file in the cache is used: %v", got)
	}
}

func TestOffline(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	usable := write("usable", `{"apiVersion":"v1","kind":"Config","current-context":"a",
"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"a","context":{"cluster":"a","namespace":"garden-a"}}]}`)
	options := Options{Program: Name, ConfigDir: filepath.Join(dir, "config"), CacheDir: filepath.Join(dir, "cache"), Kubeconfig: usable, Clock: clocktesting.NewFakePassiveClock(now)}
	run := func(options Options, args ...string) (code int, out, errOut string) {
		var o, e bytes.Buffer
		options.In, options.Out, options.ErrOut = strings.NewReader(""), &o, &e
		code = Run(t.Context(), options, args)
		return code, o.String(), e.String()
	}
	fails := func(t *testing.T, want string, options Options, args ...string) {
		t.Helper()
		code, out, errOut := run(options, args...)
		if code != 1 || out != "" || !strings.HasPrefix(errOut, "error: ") || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit code %d, output %q, want 1 and one line with %q; got:\n%s", args, code, out, want, errOut)
		}
	}
	t.Run("the garden does not respond", func(t *testing.T) {
		fails(t, "no response from the garden at https://127.0.0.1:1", options, "get", "shoots")
		fails(t, "check kubeconfig "+usable, options, "describe", "shoot", "a")
	})
	t.Run("the kubeconfig of another cluster", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		content, err := os.ReadFile(usable)
		if err != nil {
			t.Fatal(err)
		}
		other := write("other", strings.ReplaceAll(string(content), "https://127.0.0.1:1", server.URL))
		for _, args := range [][]string{{"get", "shoots"}, {"describe", "shoot", "a"}, {"wait", "shoot", "a"}} {
			fails(t, "is no garden; kubeconfig "+other+" may be that of a shoot", options, append(args, "--kubeconfig", other)...)
		}
		moved := options
		moved.Session = "moved"
		if err := os.MkdirAll(filepath.Join(options.ConfigDir, "sessions"), 0o700); err != nil {
			t.Fatal(err)
		}
		target := write("config/sessions/moved.yaml", "server: https://127.0.0.1:1\nnamespace: garden-a\nshoot: a\n")
		fails(t, "no response from the garden", moved, "describe", "shoot")
		moved.Kubeconfig = other
		if code, _, errOut := run(moved, "delete", "shoot", "--yes"); code != 1 || !strings.Contains(errOut, "no shoot is given or targeted") || !strings.Contains(errOut, "warning: the target is ignored") {
			t.Errorf("with the target of another garden: exit code %d\n%s", code, errOut)
		}
		if err := os.Remove(target); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("no kubeconfig", func(t *testing.T) {
		fails(t, "gardenctl config add garden NAME FILE", options, "get", "shoots", "--kubeconfig", filepath.Join(dir, "missing"))
		fails(t, "no context \"b\"", options, "get", "shoots", "--context", "b")
		fails(t, "gardenctl config add garden x KUBECONFIG", options, "get", "shoots", "--garden", "x")
	})
	t.Run("bad arguments", func(t *testing.T) {
		fails(t, `unknown command "gett" for "gardenctl"; did you mean "get"?`, options, "gett")
		fails(t, "gardenctl get --help", options, "get", "shot")
		fails(t, "--project and --namespace exclude each other", options, "describe", "shoot", "a", "-n", "garden-a", "--project", "a")
		fails(t, "--kubeconfig and --garden exclude each other", options, "describe", "shoot", "a", "--kubeconfig", usable, "--garden", "a")
		fails(t, "--output must be", options, "get", "shoots", "-o", "xml")
		for _, verb := range []string{"describe", "wait", "reconcile", "kubeconfig"} {
			fails(t, "no shoot is given or targeted", options, verb)
		}
		fails(t, "received 0; usage: gardenctl delete {shoot [NAME] | NAME} [flags]; see: gardenctl delete --help", options, "delete")
		fails(t, "unknown flag: --no-headers; usage: gardenctl get shoots [NAME] [flags]; see: gardenctl get shoots --help", options, "get", "shoots", "--no-headers")
		fails(t, `"soon" for "--timeout" flag: time: invalid duration "soon"; usage: gardenctl wait [shoot] [NAME] --for=CONDITION [flags]; see: gardenctl wait --help`, options, "wait", "a", "--timeout=soon")
		fails(t, "usage: gardenctl config add garden NAME KUBECONFIG [flags]; see: gardenctl config add garden --help", options, "config", "add", "garden", "a")
		fails(t, "see: gardenctl version --help", options, "version", "a")
		fails(t, "see: gardenctl completion bash --help", options, "completion", "bash", "a")
		plugin := options
		plugin.Program = pluginName
		fails(t, "usage: kubectl garden describe [shoot] [NAME] [flags]; see: kubectl garden describe --help", plugin, "describe", "shoot", "a", "b")
		fails(t, "at least 10m0s", options, "kubeconfig", "a", "--expiration", "1m")
		fails(t, "--list", options, "logs", "shoot", "a")
	})
	t.Run("configuration", func(t *testing.T) {
		for _, args := range [][]string{
			{"config", "add", "garden", "b", usable},
			{"config", "add", "garden", "a", usable, "--context", "a"},
			{"target", "garden", "b"},
			{"config", "add", "seed", "s", usable},
			{"config", "add", "seed", "r", usable},
		} {
			if code, _, errOut := run(options, args...); code != 0 {
				t.Fatalf("%v: %s", args, errOut)
			}
		}
		_, out, _ := run(options, "config", "view")
		want := "# " + filepath.Join(dir, "config", "config.yaml") + `
gardens:
- context: a
  kubeconfig: FILE
  name: a
- kubeconfig: FILE
  name: b
  seeds:
  - kubeconfig: FILE
    name: r
  - kubeconfig: FILE
    name: s
`
		if diff := cmp.Diff(strings.ReplaceAll(want, "FILE", usable), out); diff != "" {
			t.Errorf("config view (-want +got):\n%s", diff)
		}
		fails(t, "is not in the configuration", options, "config", "delete", "garden", "c")
	})
	t.Run("a garden that is targeted, but not in the configuration any more", func(t *testing.T) {
		removed := options
		removed.Session = "removed"
		for _, args := range [][]string{{"config", "add", "garden", "c", usable}, {"target", "garden", "c"}, {"config", "delete", "garden", "c"}} {
			if code, _, errOut := run(removed, args...); code != 0 {
				t.Fatalf("%v: %s", args, errOut)
			}
		}
		for _, args := range [][]string{{"get", "shoots"}, {"describe", "a"}, {"target", "project", "a"}, {"config", "add", "seed", "s", usable}} {
			fails(t, `garden "c" is not in the configuration; add it with: gardenctl config add garden c KUBECONFIG, or: gardenctl target unset`, removed, args...)
		}
		fails(t, "gardenctl config add garden c KUBECONFIG\n", removed, "describe", "a", "--garden", "c")
		if code, _, errOut := run(removed, "target", "unset"); code != 0 {
			t.Fatal(errOut)
		}
		fails(t, "no response from the garden", removed, "describe", "a")
	})
	t.Run("terminals have targets of their own", func(t *testing.T) {
		one, two := options, options
		one.Session, two.Session = "1", "2"
		if code, _, errOut := run(one, "target", "garden", "a"); code != 0 {
			t.Fatal(errOut)
		}
		for want, o := range map[string]Options{"Garden:  a\n": one, "Garden:  b\n": two} {
			if _, out, _ := run(o, "target"); out != want {
				t.Errorf("target is %q, want %q", out, want)
			}
		}
		one.Session = "../../etc"
		fails(t, "GCTL_SESSION_ID", one, "target")
	})
	t.Run("a file of another format", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(options.ConfigDir, "target.yaml"), []byte("gardn: x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, "fix or remove it", options, "target")
	})
	t.Run("help of the plugin", func(t *testing.T) {
		plugin := options
		plugin.Program = pluginName
		if _, out, _ := run(plugin, "wait", "--help"); !strings.Contains(out, "  kubectl garden wait shoot my-cluster") || strings.Contains(out, "gardenctl") || !strings.Contains(out, "kubectl garden wait [shoot] [NAME]") {
			t.Errorf("help of the plugin:\n%s", out)
		}
	})
	t.Run("version", func(t *testing.T) {
		if code, out, _ := run(options, "version"); code != 0 || !strings.HasPrefix(out, "v") {
			t.Errorf("version is %q", out)
		}
	})
}
