package landscape

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/secrets"
)

// wantError checks the text of an error, which is empty for none.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want one with %q", err, want)
	}
}

// A Garden that was ready before is not taken for one that has the new image.
func TestRolled(t *testing.T) {
	deployment := func(name, image string, updated int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}},
			},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: updated, AvailableReplicas: 1, ReadyReplicas: 1},
		}
	}
	for name, tc := range map[string]struct {
		found []*appsv1.Deployment
		want  string
	}{
		"all run the image":        {found: []*appsv1.Deployment{deployment("a", "new", 1), deployment("b", "new", 1), deployment("c", "old", 1)}},
		"one is missing":           {found: []*appsv1.Deployment{deployment("a", "new", 1)}, want: `Deployment "b" not found`},
		"one has the former image": {found: []*appsv1.Deployment{deployment("a", "new", 1), deployment("b", "old", 1)}, want: `Deployment "b" has another image`},
		"one is rolling":           {found: []*appsv1.Deployment{deployment("a", "new", 0), deployment("b", "new", 1)}, want: `Deployment "a": `},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, rolled(tc.found, "new", "a", "b"), tc.want) })
	}
}

// A landscape of a former version is refused also if its state does not show that it has a garden, as its "up" was interrupted.
func TestRefuseFormer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.core.gardener.cloud"}}
	wantError(t, refuseFormer(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), "test"), "")
	wantError(t, refuseFormer(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(api).Build(), "test"), "with: make down NAME=test")
}

// Kubeconfigs of all clusters of all landscapes can be merged.
func TestNamed(t *testing.T) {
	l := &Landscape{Name: "mine"}
	cluster, user := &clientcmdapi.Cluster{Server: "https://api"}, &clientcmdapi.AuthInfo{Token: "t"}
	got := l.named(&clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"kubernetes": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": user},
		Contexts: map[string]*clientcmdapi.Context{"admin@kubernetes": {Cluster: "kubernetes", AuthInfo: "admin"}}, CurrentContext: "admin@kubernetes",
	}, "garden")
	want := &clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"mine-garden": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"mine-garden": user},
		Contexts: map[string]*clientcmdapi.Context{"mine-garden": {Cluster: "mine-garden", AuthInfo: "mine-garden"}}, CurrentContext: "mine-garden",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
}

// A kubeconfig that has expired is not handed out.
func TestValid(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	manager, err := secrets.New(t.Context(), secrets.Values{Client: fake.NewClientBuilder().Build(), Namespace: "garden", Identity: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := manager.Generate(t.Context(), &secrets.CertificateAuthority{Name: "ca", CommonName: "ca"})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := secrets.IssueKubeconfig(&secrets.Kubeconfig{
		Name: "garden", Server: "https://api", CA: ca.Data[secrets.DataKeyCertificateCA],
		Certificate: &secrets.Certificate{CommonName: "landscape", Usage: secrets.ClientCert, Validity: time.Hour},
	}, ca, now)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, valid(kubeconfig, now.Add(59*time.Minute)), "")
	wantError(t, valid(kubeconfig, now.Add(time.Hour)), "has expired at 2026-03-04T13:00:00Z")
	token, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"a": {Server: "https://api"}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {Token: "t"}},
		Contexts: map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}}, CurrentContext: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, valid(token, now), "read the client certificate")
}

// The status has what is wrong with the Garden.
func TestGardenProblem(t *testing.T) {
	ready := func(change func(*operatorv1alpha1.Garden)) []operatorv1alpha1.Garden {
		garden := operatorv1alpha1.Garden{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: operatorv1alpha1.GardenStatus{
				ObservedGeneration: 2, LastOperation: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded},
				Conditions: []corev1beta1.Condition{
					{Type: operatorv1alpha1.VirtualGardenAPIServerAvailable, Status: corev1beta1.ConditionTrue},
					{Type: operatorv1alpha1.RuntimeComponentsHealthy, Status: corev1beta1.ConditionTrue},
					{Type: operatorv1alpha1.VirtualComponentsHealthy, Status: corev1beta1.ConditionTrue},
				},
			},
		}
		if change != nil {
			change(&garden)
		}
		return []operatorv1alpha1.Garden{garden}
	}
	for name, tc := range map[string]struct {
		gardens []operatorv1alpha1.Garden
		want    string
	}{
		"none":           {want: "does not exist"},
		"ready":          {gardens: ready(nil)},
		"not reconciled": {gardens: ready(func(g *operatorv1alpha1.Garden) { g.Generation++ }), want: "has not reconciled"},
		"failed":         {gardens: ready(func(g *operatorv1alpha1.Garden) { g.Status.LastOperation.State = corev1beta1.LastOperationStateError }), want: "Reconcile Error"},
		"unhealthy":      {gardens: ready(func(g *operatorv1alpha1.Garden) { g.Status.Conditions[1].Status = corev1beta1.ConditionFalse }), want: "RuntimeComponentsHealthy"},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, gardenProblem(tc.gardens), tc.want) })
	}
}
