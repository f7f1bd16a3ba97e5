package gardenctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// answers are the responses of a server, by "VERB PATH", where WATCH is a verb. Requests without a response are not found.
type answers map[string]http.HandlerFunc

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := r.Method
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	if answer := a[verb+" "+r.URL.Path]; answer != nil {
		answer(w, r)
		return
	}
	status(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
}

func object(o any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o)
	}
}

func status(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, //nolint:gosec // it is small
			Message: "the server says " + string(reason),
		})
	}
}

// inTurn gives one response after the other, and repeats the last.
func inTurn(all ...http.HandlerFunc) http.HandlerFunc {
	var lock sync.Mutex
	next := 0
	return func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		answer := all[min(next, len(all)-1)]
		next++
		lock.Unlock()
		answer(w, r)
	}
}

// online returns a function that runs commands in a garden.
func online(t *testing.T, a answers) func(args ...string) (code int, out, errOut string) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],
"contexts":[{"name":"a","context":{"cluster":"a","namespace":"garden-dev"}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (int, string, string) {
		var o, e bytes.Buffer
		code := Run(t.Context(), Options{
			Program: Name, ConfigDir: dir, CacheDir: dir, Kubeconfig: file, Clock: clocktesting.NewFakePassiveClock(now),
			In: strings.NewReader(""), Out: &o, ErrOut: &e,
		}, args)
		return code, o.String(), e.String()
	}
}

const (
	shootsPath = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots"
	shootPath  = shootsPath + "/crazy-botany"
)

func typed(s *corev1beta1.Shoot) *corev1beta1.Shoot {
	s.APIVersion, s.Kind, s.ResourceVersion = corev1beta1.SchemeGroupVersion.String(), "Shoot", "1"
	return s
}

func listed(shoots ...corev1beta1.Shoot) http.HandlerFunc {
	return object(&corev1beta1.ShootList{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "ShootList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: shoots,
	})
}

func TestWait(t *testing.T) {
	get := func(s *corev1beta1.Shoot) answers { return answers{"GET " + shootPath: object(typed(s))} }
	with := func(a answers, request string, answer http.HandlerFunc) answers {
		a[request] = answer
		return a
	}
	forbidden := status(http.StatusForbidden, metav1.StatusReasonForbidden)
	unauthorized := status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	for name, tc := range map[string]struct {
		answers answers
		args    string
		out     string
		err     string
	}{
		"once, and reached":         {get(running()), "--timeout=0", "shoot crazy-botany is healthy\n", ""},
		"once, and it is gone":      {answers{}, "--for=deleted --timeout=0", "shoot crazy-botany is deleted\n", ""},
		"once, and not reached":     {get(created()), "--timeout=0", "", `shoot "crazy-botany" is not healthy: waiting for the scheduler; see: gardenctl describe shoot crazy-botany -n garden-dev`},
		"once, and impossible":      {get(failing()), "--timeout=0", "", `shoot "crazy-botany" will not be healthy: Reconcile Failed 45%`},
		"reached":                   {get(running()), "", "shoot crazy-botany is healthy\n", ""},
		"impossible":                {get(failing()), "", "", `shoot "crazy-botany" will not be healthy: Reconcile Failed 45%`},
		"it does not exist":         {answers{}, "", "", "list existing ones with: gardenctl get shoots -n garden-dev"},
		"get is refused":            {answers{"GET " + shootPath: forbidden}, "", "", "the server says Forbidden; ask an administrator of the project for access"},
		"list and watch is refused": {with(with(get(created()), "GET "+shootsPath, forbidden), "WATCH "+shootsPath, forbidden), "", "", "the server says Forbidden; ask an administrator of the project for access"},
		"watch is refused":          {with(with(get(created()), "GET "+shootsPath, listed(*created())), "WATCH "+shootsPath, forbidden), "", "", "the server says Forbidden; ask an administrator of the project for access"},
		"the token has expired":     {with(with(get(created()), "GET "+shootsPath, unauthorized), "WATCH "+shootsPath, unauthorized), "", "", "the garden rejects your credentials (the server says Unauthorized); renew those in kubeconfig"},
		"the token was renewed": {
			with(with(get(created()), "GET "+shootsPath, inTurn(unauthorized, listed(*typed(running())))), "WATCH "+shootsPath, inTurn(unauthorized, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))),
			"", "shoot crazy-botany is healthy\n", "",
		},
		"timed out": {
			with(with(get(created()), "GET "+shootsPath, listed(*created())), "WATCH "+shootsPath, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)),
			"--timeout=300ms", "", `waited 300ms for shoot "crazy-botany" to be healthy: waiting for the scheduler (timed out); see: gardenctl describe`,
		},
		"timed out before there is a list": {get(created()), "--timeout=1ns", "", `waited 1ns for shoot "crazy-botany" to be healthy: waiting for the scheduler (timed out); see: gardenctl describe`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := online(t, tc.answers)(append([]string{"wait", "crazy-botany", "--timeout=20s"}, strings.Fields(tc.args)...)...)
			if (code == 0) != (tc.err == "") || out != tc.out || !strings.Contains(errOut, tc.err) {
				t.Errorf("exit code %d, output %q, error %q; want %q, %q", code, out, errOut, tc.out, tc.err)
			}
		})
	}
}

// signal is a writer that closes a channel when something is written to it.
type signal struct {
	bytes.Buffer
	once    sync.Once
	written chan struct{}
}

func (s *signal) Write(p []byte) (int, error) {
	defer s.once.Do(func() { close(s.written) })
	return s.Buffer.Write(p)
}

func TestPrintLogs(t *testing.T) {
	const a, b, c = "a", "b", "c"
	for name, tc := range map[string]struct {
		pods, bad []string
		follow    bool
		out       []string // lines in any order
		errOut    string
		err       string
	}{
		"one":                  {pods: []string{a}, out: []string{"hello"}},
		"one fails":            {pods: []string{a}, bad: []string{a}, err: `pod "a": the server says BadRequest`},
		"one fails, followed":  {pods: []string{a}, bad: []string{a}, follow: true, err: `pod "a": the server says BadRequest`},
		"all":                  {pods: []string{a, b}, out: []string{"[a/main] hello", "[b/main] hello"}},
		"the others are shown": {pods: []string{a, b, c}, bad: []string{a, b}, out: []string{"[c/main] hello"}, err: `[pod "a": the server says BadRequest, pod "b": the server says BadRequest]`},
		"a warning comes before the others end": {
			pods: []string{a, b, c}, bad: []string{b}, follow: true, out: []string{"[a/main] hello", "[c/main] hello"},
			errOut: "warning: pod \"b\": the server says BadRequest\n", err: `pod "b": the server says BadRequest`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			errOut := &signal{written: make(chan struct{})}
			all, pods := answers{}, []corev1.Pod{}
			for _, pod := range tc.pods {
				pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}})
				all["GET /api/v1/namespaces/ns/pods/"+pod+"/log"] = func(w http.ResponseWriter, r *http.Request) {
					if slices.Contains(tc.bad, pod) {
						status(http.StatusBadRequest, metav1.StatusReasonBadRequest)(w, r)
						return
					}
					_, _ = io.WriteString(w, "hello\n")
					if tc.follow && len(tc.bad) > 0 {
						w.(http.Flusher).Flush() //nolint:forcetypeassert // the server's is one
						select {
						case <-errOut.written:
						case <-r.Context().Done():
						}
					}
				}
			}
			server := httptest.NewServer(all)
			defer server.Close()
			client, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			defer cancel()
			var out bytes.Buffer
			err = (&cli{Options: Options{Out: &out, ErrOut: errOut}}).printLogs(ctx, client.Pods("ns"), pods, logRequest{follow: tc.follow, tail: -1})
			got := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
			slices.Sort(got)
			if !slices.Equal(got, tc.out) || errOut.String() != tc.errOut {
				t.Errorf("prints %q and %q, want %q and %q", got, errOut.String(), tc.out, tc.errOut)
			}
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("the error is %v, want %s", err, tc.err)
			}
		})
	}
}

func TestCompleteLogs(t *testing.T) {
	pod := func(name string) corev1.Pod { return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	run := online(t, answers{
		"GET " + shootsPath: listed(*running()),
		"GET " + shootPath:  object(typed(running())),
		"GET /api/v1/namespaces/shoot--dev--crazy-botany": object(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}),
		"GET /api/v1/namespaces/shoot--dev--crazy-botany/pods": object(&corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod("kube-apiserver"), pod("etcd-main"), pod("etcd-events")},
		}),
	})
	for name, tc := range map[string]struct{ args, prefix, want string }{
		"the shoot first":                 {want: "shoot"},
		"its name":                        {args: "shoot", want: "crazy-botany"},
		"components":                      {args: "shoot crazy-botany", want: "etcd-events etcd-main kube-apiserver"},
		"components that begin so":        {args: "crazy-botany", prefix: "etcd", want: "etcd-events etcd-main"},
		"those of the shoot of the flag":  {args: "--shoot=crazy-botany", want: "shoot etcd-events etcd-main kube-apiserver"},
		"nothing after a component":       {args: "shoot crazy-botany etcd-main"},
		"nothing of a missing shoot":      {args: "shoot lazy-botany"},
		"no components of a list of them": {args: "shoot crazy-botany --list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, _ := run(append(append([]string{"__complete", "logs"}, strings.Fields(tc.args)...), tc.prefix)...)
			names, _, _ := strings.Cut(out, ":4\n") // no files
			if got := strings.Join(strings.Fields(names), " "); got != tc.want {
				t.Errorf("completes %q, want %q", got, tc.want)
			}
		})
	}
}

// A request for an operation warns about the annotation that may prevent it.
func TestOperationOfAnIgnoredShoot(t *testing.T) {
	for value, want := range map[string]string{
		"1": "warning: the shoot has the annotation shoot.gardener.cloud/ignore: " + ignored + "; the operation then waits until it is removed\n", "false": "",
	} {
		s := typed(running())
		s.Annotations[constants.ShootIgnore] = value
		run := online(t, answers{"GET " + shootPath: object(s), "PATCH " + shootPath: object(s)})
		if code, out, errOut := run("reconcile", "crazy-botany"); code != 0 || out != "shoot crazy-botany: reconciliation requested\n" || errOut != want {
			t.Errorf("with %q: exit code %d, output %q, %q, want %q", value, code, out, errOut, want)
		}
	}
}

// Waiting for a maintenance ends with an error if it fails, also if the shoot is healthy. The result of the one before does not count.
func TestWaitForMaintenance(t *testing.T) {
	last := func(minute int, state corev1beta1.LastOperationState) *corev1beta1.Shoot {
		s := typed(running())
		s.Status.LastMaintenance = &corev1beta1.LastMaintenance{
			Description: "Started reconcile.", TriggeredTime: before(time.Duration(-minute) * time.Minute), State: state,
		}
		if state == corev1beta1.LastOperationStateFailed {
			s.Status.LastMaintenance.FailureReason = new("No newer version")
		}
		return s
	}
	for name, tc := range map[string]struct {
		before, after *corev1beta1.Shoot
		code          int
		want          string
	}{
		"failed": {
			before: last(1, "Succeeded"), after: last(2, "Failed"), code: 1,
			want: `error: shoot "crazy-botany" will not be maintained: the maintenance has failed: Started reconcile.; No newer version; ` +
				"see: gardenctl describe shoot crazy-botany -n garden-dev\n",
		},
		"the first one failed": {
			before: typed(running()), after: last(2, "Failed"), code: 1,
			want: `error: shoot "crazy-botany" will not be maintained: the maintenance has failed: Started reconcile.; No newer version; ` +
				"see: gardenctl describe shoot crazy-botany -n garden-dev\n",
		},
		"succeeded":                       {before: last(1, "Failed"), after: last(2, "Succeeded")},
		"not done yet, and failed before": {before: last(1, "Failed"), after: last(1, "Failed")},
	} {
		t.Run(name, func(t *testing.T) {
			run := online(t, answers{"GET " + shootPath: inTurn(object(tc.before), object(tc.before), object(tc.after)), "PATCH " + shootPath: object(tc.before)})
			if code, _, errOut := run("maintain", "crazy-botany", "--wait"); code != tc.code || errOut != tc.want {
				t.Errorf("exit code %d, %q, want %d, %q", code, errOut, tc.code, tc.want)
			}
		})
	}
}

// A script whose variable is empty does not delete what happens to be targeted.
func TestDeleteWithoutAsking(t *testing.T) {
	gone := false
	remove := func(w http.ResponseWriter, r *http.Request) {
		gone = true
		object(typed(running()))(w, r)
	}
	run := online(t, answers{
		"GET " + shootPath: object(typed(running())), "PATCH " + shootPath: object(typed(running())), "DELETE " + shootPath: remove,
	})
	if code, _, errOut := run("target", "shoot", "crazy-botany"); code != 0 {
		t.Fatal(errOut)
	}
	for _, args := range [][]string{{"shoot"}, {"shoot", ""}, {"shoot/"}, {""}} {
		if code, _, errOut := run(append([]string{"delete", "--yes"}, args...)...); code != 1 || gone {
			t.Errorf("delete %q: exit code %d, %q, gone %t", args, code, errOut, gone)
		}
	}
	if code, _, errOut := run("delete", "shoot", "crazy-botany", "--yes"); code != 0 || !gone {
		t.Errorf("with a name: exit code %d, %q", code, errOut)
	}
}

// A garden with many shoots is listed in pages: one response with all of them takes longer than a request may.
func TestGetPages(t *testing.T) {
	requested := []string{}
	page := func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.Query().Get("continue")
		requested = append(requested, at+" "+r.URL.Query().Get("limit"))
		name, next := "first", "more"
		if at == "more" {
			name, next = "second", ""
		}
		meta := metav1.ListMeta{ResourceVersion: "1", Continue: next}
		s := typed(running())
		s.Name = name
		if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
			object(&corev1beta1.ShootList{
				TypeMeta: metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "ShootList"}, ListMeta: meta, Items: []corev1beta1.Shoot{*s},
			})(w, r)
			return
		}
		object(&metav1.Table{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, ListMeta: meta,
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}}, Rows: []metav1.TableRow{{Cells: []any{name}}},
		})(w, r)
	}
	run := online(t, answers{"GET " + shootsPath: page})
	for output, want := range map[string]string{
		"":     "NAME\nfirst\nsecond\n",
		"name": "shoot.core.gardener.cloud/first\nshoot.core.gardener.cloud/second\n",
	} {
		requested = nil
		code, out, errOut := run("get", "shoots", "-o", output)
		if code != 0 || out != want {
			t.Errorf("-o %q: exit code %d, output %q, want %q; %s", output, code, out, want, errOut)
		}
		if want := []string{" 500", "more 500"}; !slices.Equal(requested, want) {
			t.Errorf("-o %q: requested %q, want %q", output, requested, want)
		}
	}
}

// A garden issues credentials, and has no say in what runs on the computer of its users, nor in which of their files are sent where.
func TestKubeconfigOfGardenIsSelfContained(t *testing.T) {
	for name, tc := range map[string]struct{ user, cluster, refused string }{
		"credentials":     {user: `{"token":"t"}`},
		"a program":       {user: `{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"touch","args":["MARK"],"interactiveMode":"Never"}}`, refused: "users[0].user.exec"},
		"a plugin":        {user: `{"auth-provider":{"name":"gcp","config":{"cmd-path":"touch"}}}`, refused: "users[0].user.auth-provider"},
		"a file of users": {user: `{"tokenFile":"/home/a/.ssh/id_rsa"}`, refused: "users[0].user.tokenFile"},
		"a file of a CA":  {user: `{"token":"t"}`, cluster: `,"certificate-authority":"/dev/zero"`, refused: "clusters[0].cluster.certificate-authority"},
	} {
		t.Run(name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark")
			kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"%s}}],
"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":%s}]}`, tc.cluster, strings.Replace(tc.user, "MARK", mark, 1))
			run := online(t, answers{"POST " + shootPath + "/adminkubeconfig": object(&authenticationv1alpha1.AdminKubeconfigRequest{
				TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1alpha1.SchemeGroupVersion.String(), Kind: "AdminKubeconfigRequest"},
				Status:   authenticationv1alpha1.AdminKubeconfigRequestStatus{Kubeconfig: []byte(kubeconfig), ExpirationTimestamp: metav1.NewTime(now.Add(time.Hour))},
			})})
			code, out, errOut := run("kubeconfig", "crazy-botany", "-o", "json")
			if (code != 0) != (tc.refused != "") || !strings.Contains(errOut, tc.refused) || tc.refused != "" && out != "" {
				t.Errorf("exit code %d, output %q, error %q, want %q", code, out, errOut, tc.refused)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the program ran")
			}
		})
	}
}
