package plant

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/test/behind"
)

// garden is a fake garden with one Plant, whose kubeconfig is in the Secret "k".
func garden(t *testing.T, kubeconfig string) (client.WithWatch, *corev1beta1.Plant) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, corev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	plant := &corev1beta1.Plant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "p", Generation: 3},
		Spec:       corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "k"}},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "k"}, Data: map[string][]byte{"kubeconfig": []byte(kubeconfig)}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(plant, secret).WithStatusSubresource(plant).Build(), plant
}

func reconcilerOf(cache client.Client, api client.Reader, recorder events.EventRecorder, blocked func(string) string) *reconciler {
	return &reconciler{
		Values:      Values{SyncPeriod: time.Minute, Blocked: blocked, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))},
		gardenCache: cache, gardenAPI: api, recorder: recorder,
	}
}

// expect runs one pass, after which the Plant must be checked again after a while, without precedence over others.
func expect(t *testing.T, r *reconciler, again time.Duration) {
	t.Helper()
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "garden-dev", Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reconcile.Result{RequeueAfter: again, Priority: new(handler.LowPriority)}, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func pass(t *testing.T, cache client.Client, api client.Reader, blocked func(string) string) []string {
	t.Helper()
	recorder := events.NewFakeRecorder(10)
	expect(t, reconcilerOf(cache, api, recorder, blocked), time.Minute)
	var recorded []string
	for len(recorder.Events) > 0 {
		recorded = append(recorded, <-recorder.Events)
	}
	return recorded
}

func TestReconcileWithStaleCache(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	api, plant := garden(t, kubeconfigFor(server, ""))
	behind.Case[*corev1beta1.Plant]{
		API: api, Object: plant,
		Status: func(p *corev1beta1.Plant) any { return statuses(p) },
		Other:  func(p *corev1beta1.Plant) { p.Status.Conditions[0].Status = corev1beta1.ConditionFalse },
		Pass:   func(cache client.WithWatch) { pass(t, cache, api, anywhere) },
	}.Run(t)
}

// The result of a check during which the Plant has changed is not written, and the check is repeated soon.
func TestChangeDuringCheck(t *testing.T) {
	change := func() {}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		change()
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	api, plant := garden(t, kubeconfigFor(server, ""))
	change = sync.OnceFunc(func() {
		patch := client.MergeFrom(plant.DeepCopy())
		plant.Spec.SecretRef.Name = "other"
		if err := api.Patch(t.Context(), plant, patch); err != nil {
			t.Error(err)
		}
	})
	recorder := events.NewFakeRecorder(10)
	r := reconcilerOf(api, api, recorder, anywhere)
	expect(t, r, 200*time.Millisecond)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(plant), plant); err != nil || len(plant.Status.Conditions) > 0 || len(recorder.Events) > 0 {
		t.Errorf("the Plant has status %v, %d events, and error %v", plant.Status, len(recorder.Events), err)
	}
	expect(t, r, time.Minute)
}

func statuses(p *corev1beta1.Plant) map[corev1beta1.ConditionType]corev1beta1.ConditionStatus {
	all := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{}
	for _, c := range p.Status.Conditions {
		all[c.Type] = c.Status
	}
	return all
}

// An event says what has changed, once.
func TestEvents(t *testing.T) {
	code := http.StatusInternalServerError
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	api, _ := garden(t, kubeconfigFor(server, ""))
	const down, up = "Warning HealthzRequestFailed APIServerAvailable", "Normal HealthzRequestSucceeded APIServerAvailable"
	for _, step := range []struct {
		code int
		want []string
	}{
		{500, []string{down}}, // that nodes are unknown follows from it
		{503, nil},            // another message
		{200, []string{up, "Normal EveryNodeReady EveryNodeReady"}},
		{200, nil},
	} {
		code = step.code
		var got []string
		for _, event := range pass(t, api, api, anywhere) {
			begin, _, _ := strings.Cut(event, ":")
			got = append(got, begin)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("events when the server answers %d (-want +got):\n%s", step.code, diff)
		}
	}
}

// The API server refuses events with longer notes.
func TestLongMessages(t *testing.T) {
	name := strings.Repeat("a", 253)
	kubeconfig := "users: [{}, " + strings.Repeat("{"+strings.Repeat("ä", 300)+": x}, ", 5) + "]"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := make([]string, namedNodes)
		for i := range items {
			items[i] = nodeJSON(fmt.Sprint(name[1:], i), "False")
		}
		fmt.Fprint(w, `{"items":[`+strings.Join(items, ",")+`]}`)
	}))
	defer server.Close()
	for what, kubeconfig := range map[string]string{"kubeconfig": kubeconfig, "nodes": kubeconfigFor(server, "")} {
		api, _ := garden(t, kubeconfig)
		events := pass(t, api, api, anywhere)
		if len(events) == 0 {
			t.Errorf("%s: no event", what)
		}
		for _, event := range events {
			_, note, _ := strings.Cut(strings.TrimPrefix(event, "Warning "), " ")
			if len(note) > maxText || len(note) < maxText-4 || !utf8.ValidString(note) || !strings.HasSuffix(note, "...") {
				t.Errorf("%s: a note of %d bytes: %q", what, len(note), note)
			}
		}
	}
}

// A kubeconfig can neither run programs, nor read files, nor lead to what only this process reaches.
func TestHostileKubeconfigs(t *testing.T) {
	reached := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer server.Close()
	valid := kubeconfigFor(server, "")
	replaced := func(old, by string) string {
		t.Helper()
		if !strings.Contains(valid, old) {
			t.Fatalf("the kubeconfig has no %q", old)
		}
		return strings.Replace(valid, old, by, 1)
	}
	for name, tc := range map[string]struct {
		kubeconfig string
		blocked    func(string) string
		want       string
	}{
		"a program":          {replaced("{token: t}", "{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}"), anywhere, "users[0].user.exec"},
		"a plugin":           {replaced("{token: t}", "{auth-provider: {name: oidc}}"), anywhere, "users[0].user.auth-provider"},
		"a token file":       {replaced("{token: t}", "{tokenFile: /var/run/secrets/token}"), anywhere, "users[0].user.tokenFile"},
		"a key file":         {replaced("{token: t}", "{client-certificate: /a, client-key: /b}"), anywhere, "users[0].user.client-certificate"},
		"another user":       {replaced("{token: t}", "{token: t, as: admin}"), anywhere, "users[0].user.as"},
		"a CA file":          {replaced("{server", "{certificate-authority: /a, server"), anywhere, "clusters[0].cluster.certificate-authority"},
		"a proxy":            {replaced("{server", "{proxy-url: 'http://proxy.example.com', server"), anywhere, "clusters[0].cluster.proxy-url"},
		"this pod":           {valid, destination.Host, "clusters[0].cluster.server"},
		"a metadata service": {replaced(server.URL, "https://169.254.169.254"), destination.Host, "clusters[0].cluster.server"},
		"a Service":          {replaced(server.URL, "https://kube-apiserver.garden.svc"), destination.Host, "clusters[0].cluster.server"},
		"a private network":  {replaced(server.URL, "https://10.0.0.1"), destination.Public("10.1.0.0/16"), "clusters[0].cluster.server"},
		"without encryption": {replaced("https://", "http://"), anywhere, "clusters[0].cluster.server"},
		"nothing":            {"", anywhere, `has no key "kubeconfig"`},
		"not a kubeconfig":   {"~secret~: [", anywhere, "must be a YAML or JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			api, plant := garden(t, tc.kubeconfig)
			pass(t, api, api, tc.blocked)
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(plant), plant); err != nil {
				t.Fatal(err)
			}
			for _, c := range plant.Status.Conditions {
				if c.Status != corev1beta1.ConditionUnknown || c.Reason != reasonKubeconfig || !strings.Contains(c.Message, tc.want) || strings.Contains(c.Message, "secret") {
					t.Errorf("condition %s is %s, %s: %s; want %q in it", c.Type, c.Status, c.Reason, c.Message, tc.want)
				}
			}
			if len(plant.Status.Conditions) != 2 || plant.Status.ObservedGeneration == nil || *plant.Status.ObservedGeneration != 3 {
				t.Errorf("status is %v", plant.Status)
			}
		})
	}
	if reached > 0 {
		t.Errorf("the server was reached %d times", reached)
	}
}
