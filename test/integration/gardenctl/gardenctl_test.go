// Package gardenctl tests the command line against a real garden API.
package gardenctl

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/gardenctl"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	devNamespace = "garden-dev"
	// node is where pods of control planes are.
	node = "node"
	// patience is how long something may take that takes well below a second on an idle machine.
	patience = time.Minute
	// cacheDirVariable makes this test binary be gardenctl.
	cacheDirVariable = "GARDENCTL_TEST_CACHE_DIR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(cacheDirVariable); dir != "" {
		os.Exit(gardenctl.Run(context.Background(), gardenctl.Options{
			In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr, ConfigDir: dir, CacheDir: dir, Clock: clock.RealClock{},
		}, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// user runs gardenctl at a terminal.
type user struct {
	*env.Env
	options gardenctl.Options
}

// run returns what a command prints, and its exit code.
func (u *user) run(ctx context.Context, args ...string) (out, errOut string, code int) {
	var o, e bytes.Buffer
	options := u.options
	options.Out, options.ErrOut = &o, &e
	code = gardenctl.Run(ctx, options, args)
	return o.String(), e.String(), code
}

// must returns what a command prints that has to succeed.
func (u *user) must(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := u.run(t.Context(), args...)
	if code != 0 {
		t.Fatalf("gardenctl %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// fails checks that a command fails, in one line.
func (u *user) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	out, errOut, code := u.run(t.Context(), args...)
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if last := lines[len(lines)-1]; code != 1 || out != "" || !strings.HasPrefix(last, "error: ") || !strings.Contains(last, want) {
		t.Errorf("gardenctl %s: exit code %d, output %q, want 1 and an error with %q; got:\n%s", strings.Join(args, " "), code, out, want, errOut)
	}
}

// said is a writer that tells when something was written to it.
type said chan string

func (s said) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// during runs a command, and does something when it has said what it waits for. It returns the exit code.
func (u *user) during(t *testing.T, waitsFor string, do func(), args ...string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	progress, end := make(said, 100), make(chan int, 1)
	options := u.options
	options.Out, options.ErrOut = io.Discard, progress
	go func() { end <- gardenctl.Run(ctx, options, args) }()
	for {
		select {
		case text := <-progress:
			if do != nil && strings.Contains(text, waitsFor) {
				do()
				do = nil
			}
		case code := <-end:
			if do != nil {
				t.Fatalf("gardenctl %s ended before it said %q", strings.Join(args, " "), waitsFor)
			}
			return code
		}
	}
}

func shoot(name string) *corev1beta1.Shoot {
	return builder.Shoot(name, builder.On("one"), builder.Window, func(s *corev1beta1.Shoot) { s.Labels = map[string]string{"is": name} })
}

func (u *user) create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := u.Client.Create(t.Context(), obj); err != nil {
		t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
	}
}

// operated makes the last operation of a shoot stand somehow.
func (u *user) operated(t *testing.T, name string, state corev1beta1.LastOperationState, progress int32) {
	t.Helper()
	s := u.shoot(t, name)
	s.Status.TechnicalID, s.Status.SeedName, s.Status.ObservedGeneration = "shoot--dev--"+name, new("one"), s.Generation
	s.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: state, Progress: progress, Description: "working", LastUpdateTime: metav1.Now(),
	}
	if err := u.Client.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func (u *user) shoot(t *testing.T, name string) *corev1beta1.Shoot {
	t.Helper()
	s := &corev1beta1.Shoot{}
	if err := u.Client.Get(t.Context(), client.ObjectKey{Namespace: devNamespace, Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// createNode makes a node whose kubelet answers requests for logs with what it was asked for.
func (u *user) createNode(t *testing.T) {
	t.Helper()
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/") // "", containerLogs, namespace, pod, container
		_, _ = fmt.Fprintf(w, "%s %s %s\n", parts[3], parts[4], r.URL.Query().Encode())
	}))
	t.Cleanup(kubelet.Close)
	address, ok := kubelet.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("the kubelet listens on %v", kubelet.Listener.Addr())
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	u.create(t, n)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
	if err := u.Client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func TestGardenctl(t *testing.T) {
	e := env.Start(t, env.Lenient())
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	u := &user{e, gardenctl.Options{
		Program: gardenctl.Name, In: strings.NewReader(""), ConfigDir: filepath.Join(dir, "config"), CacheDir: filepath.Join(dir, "cache"),
		Kubeconfig: kubeconfig, Clock: clock.RealClock{},
	}}
	u.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: devNamespace}})
	u.create(t, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new(devNamespace)}})
	for _, name := range []string{"first", "second"} {
		u.create(t, shoot(name))
	}
	u.operated(t, "first", corev1beta1.LastOperationStateSucceeded, 100)

	u.createNode(t)

	t.Run("without a target", func(t *testing.T) {
		u.fails(t, "no project is given or targeted; set --project NAME", "get", "shoots")
		u.fails(t, `project "none" not found; list existing ones with: gardenctl get projects`, "get", "shoots", "--project", "none")
	})
	t.Run("get", func(t *testing.T) { testGet(t, u) })
	t.Run("target", func(t *testing.T) { testTarget(t, u) })
	t.Run("describe", func(t *testing.T) { testDescribe(t, u) })
	t.Run("operations", func(t *testing.T) { testOperations(t, u) })
	t.Run("wait", func(t *testing.T) { testWait(t, u) })
	t.Run("kubeconfig", func(t *testing.T) { testKubeconfig(t, u, kubeconfig) })
	t.Run("logs", func(t *testing.T) { testLogs(t, u) })
	t.Run("ssh", func(t *testing.T) { testSSH(t, u) })
	t.Run("delete", func(t *testing.T) { testDelete(t, u) })
	t.Run("garden", func(t *testing.T) { testGarden(t, u) })
	t.Run("upgrade gardenlets", func(t *testing.T) { testUpgradeGardenlets(t, u) })
	t.Run("documentation", func(t *testing.T) { testDocumentation(t, u, kubeconfig) })
}

func testGet(t *testing.T, u *user) {
	table := u.must(t, "get", "shoots", "--project", "dev")
	if lines := strings.Split(table, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "NAME ") || !strings.HasPrefix(lines[1], "first ") || strings.Contains(table, "PURPOSE") {
		t.Errorf("get shoots:\n%s", table)
	}
	if wide := u.must(t, "get", "shoots", "-A", "-o", "wide"); !strings.HasPrefix(wide, "NAMESPACE ") || !strings.Contains(wide, "PURPOSE") || !strings.Contains(wide, "\ngarden-dev ") {
		t.Errorf("get shoots -A -o wide:\n%s", wide)
	}
	names := u.must(t, "get", "shoots", "-n", devNamespace, "-o", "name", "-l", "is=second")
	if want := "shoot.core.gardener.cloud/second\n"; names != want {
		t.Errorf("names are %q, want %q", names, want)
	}
	var list struct {
		Kind  string
		Items []metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(u.must(t, "get", "shoots", "-n", devNamespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[0].Kind != "Shoot" || list.Items[0].APIVersion != "core.gardener.cloud/v1beta1" || list.Items[0].ManagedFields != nil {
		t.Errorf("get shoots -o json: %+v", list)
	}
	if one := u.must(t, "get", "project", "dev", "-o", "yaml"); !strings.HasPrefix(one, "apiVersion: core.gardener.cloud/v1beta1\nkind: Project\n") {
		t.Errorf("get project -o yaml:\n%s", one)
	}
	u.fails(t, `shoot "third" in namespace "garden-dev" not found; list existing ones with: gardenctl get shoots`, "get", "shoot", "third", "--project", "dev")
	if _, errOut, code := u.run(t.Context(), "get", "seeds"); code != 0 || errOut != "No seeds found.\n" {
		t.Errorf("get seeds: exit code %d, %q", code, errOut)
	}
}

func testTarget(t *testing.T, u *user) {
	u.fails(t, `project "none" not found`, "target", "project", "none")
	u.must(t, "target", "project", "dev")
	u.fails(t, `shoot "third" in namespace "garden-dev" not found; list existing ones with: gardenctl get shoots -n garden-dev`, "target", "shoot", "third")
	u.must(t, "target", "shoot", "first")
	want := "Garden:     " + u.Config.Host + " (of the current kubeconfig)\nProject:    dev\nNamespace:  garden-dev\nShoot:      first\n"
	if diff := cmp.Diff(want, u.must(t, "target")); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if out := u.must(t, "describe", "shoot"); !strings.HasPrefix(out, "Shoot:            first\n") {
		t.Errorf("describe of the target:\n%s", out)
	}
	other := *u
	other.options.Session = "other"
	other.must(t, "target", "unset")
	other.fails(t, "no project is given or targeted", "get", "shoots")
	if out := other.must(t, "__complete", "describe", "shoot", "--project=dev", "s"); !strings.HasPrefix(out, "second\n") {
		t.Errorf("completion of shoots:\n%s", out)
	}
	if out := other.must(t, "__complete", "target", "project", ""); !strings.HasPrefix(out, "dev\n") {
		t.Errorf("completion of projects:\n%s", out)
	}
	u.must(t, "target", "project", "dev")
}

func testDescribe(t *testing.T, u *user) {
	s := u.shoot(t, "second")
	for i, message := range []string{"it begins", "it failed"} {
		u.create(t, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: fmt.Sprint("second.", i)}, Type: corev1.EventTypeNormal, Reason: "Tested", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "Shoot", Namespace: devNamespace, Name: s.Name, UID: s.UID},
			LastTimestamp:  metav1.NewTime(time.Now().Add(time.Duration(i) * time.Second)),
		})
	}
	out := u.must(t, "describe", "shoot/second")
	for _, want := range []string{"Project:      dev (namespace garden-dev)\n", "Status:       waiting for the gardenlet of seed one\n", "Tested   it begins\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("describe has no %q:\n%s", want, out)
		}
	}
	u.fails(t, `shoot "third" in namespace "garden-dev" not found`, "describe", "shoot", "third")
}

func testOperations(t *testing.T, u *user) {
	u.fails(t, "it is not created yet", "reconcile", "shoot", "second")
	u.fails(t, "use: gardenctl reconcile shoot first -n garden-dev", "retry", "first")
	generation := u.shoot(t, "first").Generation
	u.must(t, "reconcile", "shoot", "first")
	if s := u.shoot(t, "first"); s.Generation != generation+1 {
		t.Errorf("generation after reconcile is %d, want %d", s.Generation, generation+1)
	}
	u.operated(t, "first", corev1beta1.LastOperationStateFailed, 40)
	u.fails(t, "use: gardenctl retry shoot first -n garden-dev", "reconcile", "shoot", "first")
	code := u.during(t, "the last change is not reconciled yet", func() {
		if s := u.shoot(t, "first"); s.Generation != generation+2 {
			t.Errorf("generation after retry is %d, want %d", s.Generation, generation+2)
		}
		u.operated(t, "first", corev1beta1.LastOperationStateSucceeded, 100)
	}, "retry", "shoot", "first", "--wait")
	if code != 0 {
		t.Errorf("retry --wait: exit code %d", code)
	}
	u.must(t, "maintain", "first")
	if got := u.shoot(t, "first").Annotations[constants.GardenerOperation]; got != "maintain" {
		t.Errorf("operation after maintain is %q", got)
	}
	u.fails(t, `operation "maintain" is pending`, "reconcile", "first")
}

func testWait(t *testing.T, u *user) {
	u.fails(t, "waited 500ms for shoot \"second\" to be healthy: waiting for the gardenlet", "wait", "shoot", "second", "--timeout=500ms")
	u.fails(t, `shoot "third" in namespace "garden-dev" not found`, "wait", "shoot", "third")
	code := u.during(t, "waiting for the gardenlet", func() {
		u.operated(t, "second", corev1beta1.LastOperationStateSucceeded, 100)
		s := u.shoot(t, "second")
		s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue}}
		if err := u.Client.Status().Update(t.Context(), s); err != nil {
			t.Error(err)
		}
	}, "wait", "shoot", "second", "--for=healthy")
	if code != 0 {
		t.Errorf("wait for healthy: exit code %d", code)
	}
	u.must(t, "wait", "shoot", "second", "--for=condition=APIServerAvailable")
	u.operated(t, "second", corev1beta1.LastOperationStateProcessing, 10)
	code = u.during(t, "Reconcile Processing 10%: working", func() { u.operated(t, "second", corev1beta1.LastOperationStateFailed, 10) },
		"wait", "shoot", "second", "--for=reconciled")
	if code != 1 {
		t.Errorf("wait for a shoot that fails: exit code %d, want 1", code)
	}
	u.must(t, "wait", "shoot", "third", "--for=deleted")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, errOut, code := u.run(ctx, "wait", "shoot", "second"); code != 130 || errOut != "interrupted\n" {
		t.Errorf("an interrupted wait: exit code %d, %q", code, errOut)
	}
}

func testKubeconfig(t *testing.T, u *user, garden string) {
	u.fails(t, "has no credentials yet: status.advertisedAddresses names no kube-apiserver", "kubeconfig", "first")

	// The API server of the shoot, which says who asks and with which certificate.
	authority, authorityPEM, keyPEM := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s", r.TLS.PeerCertificates[0].Subject.CommonName, r.TLS.PeerCertificates[0].SerialNumber)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority}
	server.StartTLS()
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	u.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "first.ca-cluster"}, Data: map[string]string{"ca.crt": string(bundle)}})
	u.create(t, &corev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: "first.ca-client"}, Data: map[string][]byte{"ca.crt": authorityPEM, "ca.key": keyPEM},
	})
	s := u.shoot(t, "first")
	s.Status.AdvertisedAddresses = []corev1beta1.ShootAdvertisedAddress{{Name: "external", URL: server.URL}}
	if err := u.Client.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func(kubeconfig []byte) string {
		t.Helper()
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if asked++; config.ExecProvider != nil { // clients with the same plugin share what it answered
			config.ExecProvider.InstallHint = fmt.Sprint(asked)
		}
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := httpClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	read := func(file string) []byte {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}

	if got := ask(read(strings.TrimSpace(u.must(t, "kubeconfig", "first", "--viewer")))); !strings.HasPrefix(got, constants.KubeconfigUserNamePrefix+"admin ") {
		t.Errorf("the shoot knows us as %q", got)
	}
	if got := ask([]byte(u.must(t, "kubeconfig", "shoot", "first", "-o", "json", "--expiration=20m"))); !strings.HasPrefix(got, constants.KubeconfigUserNamePrefix+"admin ") {
		t.Errorf("the shoot knows us as %q", got)
	}

	// This test is the plugin that the kubeconfig runs. It has no target and no kubeconfig from its surroundings.
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plugin := *u
	plugin.options.Executable, plugin.options.CacheDir = executable, t.TempDir()
	t.Setenv(cacheDirVariable, plugin.options.CacheDir)
	renewing := read(strings.TrimSpace(plugin.must(t, "kubeconfig", "first", "--exec")))
	if strings.Contains(string(renewing), "client-key") {
		t.Errorf("a kubeconfig that renews itself holds a key:\n%s", renewing)
	}
	first := ask(renewing)
	if second := ask(renewing); first != second {
		t.Errorf("a credential is ordered for every request: %q, then %q", first, second)
	}

	// Later than four fifths of its life, there is a new one, and that is kept in turn.
	late := plugin
	fake := clocktesting.NewFakePassiveClock(time.Now())
	late.options.Clock = fake
	credential := func() string {
		t.Helper()
		return late.must(t, "credential", "first", "-n", devNamespace, "--expiration=1h0m0s", "--kubeconfig", garden, "--context", "garden")
	}
	before := credential()
	var answer struct {
		APIVersion, Kind string
		Status           struct{ ClientCertificateData, ClientKeyData, ExpirationTimestamp string }
	}
	if err := json.Unmarshal([]byte(before), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.APIVersion != "client.authentication.k8s.io/v1" || answer.Kind != "ExecCredential" || answer.Status.ClientKeyData == "" || answer.Status.ExpirationTimestamp == "" {
		t.Errorf("the plugin answers %+v", answer)
	}
	fake.SetTime(time.Now().Add(50 * time.Minute))
	if credential() == before {
		t.Error("a credential is handed out that expires in 10 minutes")
	}
	fake.SetTime(time.Now())
	before = credential()
	if credential() != before {
		t.Error("a fresh credential is not kept")
	}
	if after := ask(renewing); after == first {
		t.Errorf("the renewed credential is not used: %q", after)
	}
}

func testLogs(t *testing.T, u *user) {
	u.fails(t, `no access to seed "one"; set --seed-kubeconfig FILE, or run: gardenctl config add seed one FILE`, "logs", "shoot", "first", "--list")
	const namespace = "shoot--dev--first"
	u.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for name, owner := range map[string]metav1.OwnerReference{
		"kube-apiserver-7f-x": {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "kube-apiserver-7f", UID: "1", Controller: new(true)},
		"kube-apiserver-7f-y": {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "kube-apiserver-7f", UID: "1", Controller: new(true)},
		"etcd-main-0":         {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "etcd-main", UID: "2", Controller: new(true)},
	} {
		u.create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"pod-template-hash": "7f"}, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "main"}, {Name: "more", Image: "more"}}},
		})
	}
	want := "COMPONENT        POD                   READY   RESTARTS   CONTAINERS\n" +
		"etcd-main        etcd-main-0           0/2     0          main,more\n" +
		"kube-apiserver   kube-apiserver-7f-x   0/2     0          main,more\n" +
		"kube-apiserver   kube-apiserver-7f-y   0/2     0          main,more\n"
	if diff := cmp.Diff(want, u.must(t, "logs", "shoot", "first", "--list")); diff != "" {
		t.Errorf("logs --list (-want +got):\n%s", diff)
	}
	u.fails(t, "there are: etcd-main, kube-apiserver", "logs", "shoot", "first", "nonsense")
	for args, want := range map[string]string{
		"etcd-main":                       "etcd-main-0 main \n",
		"etcd-main -c more -p":            "etcd-main-0 more previous=true\n",
		"etcd-main --tail=3":              "etcd-main-0 main tailLines=3\n",
		"etcd-main --since=2m -f":         "etcd-main-0 main follow=true&sinceSeconds=120\n",
		"kube-apiserver --container=main": "[kube-apiserver-7f-x/main] kube-apiserver-7f-x main \n[kube-apiserver-7f-y/main] kube-apiserver-7f-y main \n",
	} {
		if got := u.must(t, append([]string{"logs", "shoot", "first"}, strings.Fields(args)...)...); got != want {
			t.Errorf("logs %s: %q, want %q", args, got, want)
		}
	}
	followed := strings.Split(u.must(t, "logs", "shoot", "first", "kube-apiserver", "-f"), "\n")
	slices.Sort(followed)
	if want := []string{"", "[kube-apiserver-7f-x/main] kube-apiserver-7f-x main follow=true", "[kube-apiserver-7f-y/main] kube-apiserver-7f-y main follow=true"}; !slices.Equal(followed, want) {
		t.Errorf("followed logs: %q", followed)
	}
	u.fails(t, `pod "etcd-main-0": container none is not valid`, "logs", "shoot", "first", "etcd-main", "-c", "none")
}

func testDelete(t *testing.T, u *user) {
	// Something has to be cleaned up, so that the shoot does not go at once.
	s := u.shoot(t, "first")
	s.Finalizers = append(s.Finalizers, "test.example.com/hold")
	if err := u.Client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	u.fails(t, "add --yes", "delete", "shoot", "first")
	asked := *u
	asked.options.Interactive, asked.options.In = true, strings.NewReader("no\n")
	if _, errOut, code := asked.run(t.Context(), "delete", "shoot", "first"); code != 1 || !strings.HasSuffix(errOut, "error: not confirmed; nothing is deleted\n") {
		t.Errorf("a deletion that is not confirmed: exit code %d, %q", code, errOut)
	}
	if s := u.shoot(t, "first"); s.DeletionTimestamp != nil || s.Annotations[constants.ConfirmationDeletion] != "" {
		t.Fatal("it is deleted all the same")
	}
	asked.options.In = strings.NewReader("first\n")
	asked.must(t, "delete", "shoot", "first")
	if s := u.shoot(t, "first"); s.DeletionTimestamp == nil || s.Annotations[constants.ConfirmationDeletion] != "true" {
		t.Errorf("deleted at %v, annotations %v", s.DeletionTimestamp, s.Annotations)
	}
	code := u.during(t, "the deletion has not started yet", func() {
		s := u.shoot(t, "first")
		s.Finalizers = nil
		if err := u.Client.Update(t.Context(), s); err != nil {
			t.Error(err)
		}
	}, "wait", "shoot", "first", "--for=deleted")
	if code != 0 {
		t.Errorf("wait for the deletion: exit code %d", code)
	}
	err := u.Client.Get(t.Context(), client.ObjectKey{Namespace: devNamespace, Name: "first"}, s)
	if !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
	u.fails(t, `shoot "first" in namespace "garden-dev" not found`, "delete", "shoot", "first", "--yes")
	if u.must(t, "delete", "shoot", "second", "--yes", "--wait"); u.must(t, "get", "shoots") != "" {
		t.Error("there is still a shoot")
	}
}

// Every command in the documentation works as it is written, one after the other.
func testDocumentation(t *testing.T, u *user, kubeconfig string) {
	page, err := os.ReadFile("../../../docs/gardenctl.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for i, part := range strings.Split(string(page), "```") {
		code, isShell := strings.CutPrefix(part, "sh\n")
		if i%2 == 0 || !isShell {
			continue
		}
		for line := range strings.Lines(code) {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != gardenctl.Name {
				t.Errorf("%q is no command of %s", line, gardenctl.Name)
				continue
			}
			commands = append(commands, words[1:])
		}
	}
	if len(commands) < 30 {
		t.Fatalf("%d commands are documented", len(commands))
	}

	t.Chdir(t.TempDir())
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"live.yaml", "runtime.yaml"} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.must(t, "target", "unset")
	const name = "my-cluster"
	ready := func() {
		u.operated(t, name, corev1beta1.LastOperationStateSucceeded, 100)
		s := u.shoot(t, name)
		s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue}}
		s.Status.AdvertisedAddresses = []corev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api.example.com"}}
		if err := u.Client.Status().Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	order := func() {
		u.create(t, shoot(name))
		ready()
	}
	order()
	if err := u.Client.Create(t.Context(), builder.Seed("one")); err != nil {
		t.Fatal(err)
	}
	_, certPEM, keyPEM := newAuthority(t)
	u.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: name + ".ca-cluster"}, Data: map[string]string{"ca.crt": string(certPEM)}})
	u.create(t, &corev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: name + ".ca-client"}, Data: map[string][]byte{"ca.crt": certPEM, "ca.key": keyPEM},
	})
	const namespace = "shoot--dev--" + name
	u.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, pod := range []string{"kube-apiserver", "etcd-main"} {
		u.create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "etcd", Image: "main"}}},
		})
	}
	for _, command := range commands {
		switch {
		case command[0] == "logs" && command[len(command)-1] == "--list":
			order() // it was deleted before
			u.must(t, command...)
		case command[0] == "rotate":
			u.takenUp(t, name, slices.Contains(command, "--complete"))
			u.must(t, command...)
		default:
			u.must(t, command...)
			if command[0] == "reconcile" {
				ready()
			}
		}
	}
}

// takenUp does what Gardener does with an operation that was asked for, and makes the first step of a renewal of credentials be done.
func (u *user) takenUp(t *testing.T, name string, renewed bool) {
	t.Helper()
	s := u.shoot(t, name)
	delete(s.Annotations, constants.GardenerOperation)
	if err := u.Client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !renewed {
		return
	}
	prepared := corev1beta1.RotationPrepared
	s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{Phase: prepared}, ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: prepared},
		ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: prepared},
	}}
	if err := u.Client.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// newAuthority makes what signs the certificates of clients.
func newAuthority(t *testing.T) (pool *x509.CertPool, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool, certPEM, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
