package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// withCredentials is a Garden in a runtime cluster, whose credentials are generated.
type withCredentials struct {
	runtime client.WithWatch
	clock   *clocktesting.FakePassiveClock
}

func newWithCredentials(t *testing.T, garden *operatorv1alpha1.Garden) *withCredentials {
	t.Helper()
	scheme := stagetest.Scheme(t)
	for _, err := range []error{clientgoscheme.AddToScheme(scheme), operatorv1alpha1.AddToScheme(scheme)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return &withCredentials{
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(garden).Build(), clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
}

// state is that of a run that has generated all credentials.
func (w *withCredentials) state(t *testing.T, garden *operatorv1alpha1.Garden) *state {
	t.Helper()
	s := &state{reconciler: &reconciler{Values: Values{RuntimeAPI: w.runtime, Clock: w.clock}}, garden: garden}
	s.set = credentials.New(values.Credentials(garden, w.runtime, w.clock))
	s.source = values.Source{Garden: garden, Credentials: s.set}
	stagetest.Generate(t, s.set)
	return s
}

func TestPublishGenericKubeconfig(t *testing.T) {
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{"other": "annotation"}}}
	w := newWithCredentials(t, garden)
	s := w.state(t, garden)
	if err := s.publishGenericKubeconfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.runtime.Get(t.Context(), client.ObjectKeyFromObject(garden), garden); err != nil {
		t.Fatal(err)
	}
	all, err := s.set.All()
	if err != nil {
		t.Fatal(err)
	}
	name := all.Name("generic-token-kubeconfig")
	if got := garden.Annotations["generic-token-kubeconfig.secret.gardener.cloud/name"]; name == "" || got != name || garden.Annotations["other"] != "annotation" {
		t.Errorf("the annotations are %v, want %q", garden.Annotations, name)
	}
}
