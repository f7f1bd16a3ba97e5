package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/golden"
)

// landscape is a runtime cluster and a virtual cluster with a gardener-operator, and without any other controllers: resources are reconciled when they
// are read.
type landscape struct {
	runtime, virtual client.WithWatch
	*reconciler
}

func newLandscape(t *testing.T) *landscape {
	t.Helper()
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	system, err := systemcomponents.FindImages(images, "v1")
	if err != nil {
		t.Fatal(err)
	}
	c := stagetest.New(t)
	l := &landscape{
		runtime: c.Seed, virtual: c.Shoot,
		reconciler: &reconciler{
			Values: Values{
				RuntimeAPI: c.Seed, RuntimeVersion: runtimeVersion{}, Images: images, SystemImages: system, Gardener: corev1beta1.Gardener{Name: "operator", Version: "v1"},
				Connect: func(*rest.Config) (client.WithWatch, error) { return c.Shoot, nil }, Discover: stagetest.Discover,
				Config: &operatorconfigv1alpha1.OperatorConfiguration{}, Clock: clock.RealClock{},
			},
			runtimeCache: c.Seed,
		},
	}
	// Fake clusters give no addresses to Services, and do not aggregate APIs.
	create(t, c.Seed, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-apiserver"}, Spec: corev1.ServiceSpec{ClusterIP: "10.4.0.9"}})
	for _, api := range gardenerapiserver.Versions() {
		create(t, c.Shoot, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: api.Version + "." + api.Group},
			Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{
				{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue},
			}},
		})
	}
	return l
}

// runtimeVersion is that of the runtime cluster.
type runtimeVersion struct{}

func (runtimeVersion) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v1.35.0"}, nil
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// plainGarden is the smallest Garden, without the Vertical Pod Autoscaler.
func plainGarden() *operatorv1alpha1.Garden {
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "7ab7e84b", Generation: 3}}
	garden.Spec.RuntimeCluster.Ingress.Domains = []operatorv1alpha1.DNSDomain{{Name: "ingress.example.com"}}
	garden.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{VerticalPodAutoscaler: &operatorv1alpha1.SettingVerticalPodAutoscaler{Enabled: new(false)}}
	v := &garden.Spec.VirtualCluster
	v.DNS.Domains = []operatorv1alpha1.DNSDomain{{Name: "garden.example.com"}}
	v.Kubernetes.Version = "1.36.3"
	v.Maintenance.TimeWindow = corev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"}
	v.Networking.Services = []string{"100.64.0.0/13"}
	v.Gardener.ClusterIdentity = "local"
	return garden
}

// fullGarden is highly available in zones, and has backups, DNSRecords, gardener-discovery-server, an Extension and the Vertical Pod Autoscaler.
func fullGarden() *operatorv1alpha1.Garden {
	garden := plainGarden()
	garden.Spec.DNS = &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{
		{Name: "first", Type: "local", SecretRef: corev1.LocalObjectReference{Name: "dns"}},
	}}
	garden.Spec.Extensions = []operatorv1alpha1.GardenExtension{{Type: "early"}, {Type: "late"}}
	garden.Spec.RuntimeCluster.Provider.Zones = []string{"a", "b", "c"}
	garden.Spec.RuntimeCluster.Settings = nil
	v := &garden.Spec.VirtualCluster
	v.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
	v.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{
		Provider: "local", Region: new("local"), SecretRef: corev1.LocalObjectReference{Name: "backup"},
	}}}
	v.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{Domain: &operatorv1alpha1.DNSDomain{Name: "discovery.example.com"}}
	return garden
}

// rotating has all rotations of a Garden in a phase.
func rotating(garden *operatorv1alpha1.Garden, phase corev1beta1.CredentialsRotationPhase) *operatorv1alpha1.Garden {
	at := &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{Phase: phase, LastInitiationTime: at},
		ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: phase, LastInitiationTime: at},
		ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase, LastInitiationTime: at},
		WorkloadIdentityKey:    &operatorv1alpha1.WorkloadIdentityKeyRotation{Phase: phase, LastInitiationTime: at},
	}}
	return garden
}

// encrypting encrypts other resources than the status says.
func encrypting(garden *operatorv1alpha1.Garden) *operatorv1alpha1.Garden {
	garden.Status.Credentials = &operatorv1alpha1.Credentials{EncryptionAtRest: &operatorv1alpha1.EncryptionAtRest{Resources: []string{"secretbindings.core.gardener.cloud"}}}
	garden.Spec.VirtualCluster.Kubernetes.KubeAPIServer = &operatorv1alpha1.KubeAPIServerConfig{
		KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"configmaps"}}},
	}
	garden.Spec.VirtualCluster.Gardener.GardenerAPIServer = &operatorv1alpha1.GardenerAPIServerConfig{
		EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"shoots.core.gardener.cloud"}},
	}
	return garden
}

// installed are the Extensions of operator.gardener.cloud for the types of a full Garden.
func installed() []client.Object {
	resource := func(typ string, lifecycle *corev1beta1.ControllerResourceLifecycle) corev1beta1.ControllerResource {
		return corev1beta1.ControllerResource{
			Kind: "Extension", Type: typ, Lifecycle: lifecycle, ClusterCompatibility: []corev1beta1.ClusterType{corev1beta1.ClusterTypeGarden},
		}
	}
	early := &corev1beta1.ControllerResourceLifecycle{Reconcile: new(corev1beta1.BeforeKubeAPIServer), Delete: new(corev1beta1.BeforeKubeAPIServer)}
	return []client.Object{&operatorv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Name: "any"},
		Spec:       operatorv1alpha1.ExtensionSpec{Resources: []corev1beta1.ControllerResource{resource("early", early), resource("late", nil), resource("former", nil)}},
	}}
}

// existing are Extensions of the garden of some types.
func existing(types ...string) []client.Object {
	var objects []client.Object
	for _, typ := range types {
		objects = append(objects, &extensionsv1alpha1.Extension{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: typ},
			Spec:       extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: typ, Class: new(extensionsv1alpha1.ExtensionClassGarden)}},
		})
	}
	return objects
}

func TestFlows(t *testing.T) {
	for name, tc := range map[string]struct {
		garden  *operatorv1alpha1.Garden
		objects []client.Object
	}{
		"plain":             {garden: plainGarden()},
		"full":              {garden: fullGarden(), objects: append(installed(), existing("early", "former")...)},
		"preparing":         {garden: rotating(plainGarden(), corev1beta1.RotationPreparing)},
		"completing":        {garden: rotating(fullGarden(), corev1beta1.RotationCompleting)},
		"encryption-change": {garden: encrypting(plainGarden())},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t)
			create(t, l.runtime, tc.objects...)
			s, err := l.observe(t.Context(), tc.garden)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "flows/"+name+"-runtime.txt", s.runtimeFlow)
			compare(t, "flows/"+name+".txt", s.virtualFlow)
		})
	}
}

func TestDeletionFlows(t *testing.T) {
	for name, tc := range map[string]struct {
		garden  *operatorv1alpha1.Garden
		objects []client.Object
	}{
		"plain": {garden: plainGarden()},
		"full":  {garden: fullGarden(), objects: append(installed(), existing("early", "late")...)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t)
			create(t, l.runtime, tc.objects...)
			tc.garden.DeletionTimestamp = new(metav1.Now())
			s, err := l.observe(t.Context(), tc.garden)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "flows/"+name+"-deletion.txt", s.deletionFlow)
		})
	}
}

func compare(t *testing.T, file string, compose func() (*flow.Flow, error)) {
	t.Helper()
	f, err := compose()
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, file, f.String())
}

// Each task has what it reads when only the tasks are done that it comes after: what it reads of others is an error.
func TestTasksHaveWhatTheyRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds, as the fake of an API server is slow to apply")
	}
	logf.SetLogger(logr.Discard())
	for name, garden := range map[string]func() *operatorv1alpha1.Garden{
		"plain":             plainGarden,
		"preparing":         func() *operatorv1alpha1.Garden { return rotating(fullGarden(), corev1beta1.RotationPreparing) },
		"encryption change": func() *operatorv1alpha1.Garden { return encrypting(plainGarden()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLandscape(t)
			create(t, l.runtime, append(installed(), garden())...)
			create(t, l.runtime, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}})
			// compose returns the flow for the virtual cluster of a new pass, whose flow for the runtime cluster is done.
			compose := func() *flow.Flow {
				t.Helper()
				s, err := l.observe(t.Context(), garden())
				if err != nil {
					t.Fatal(err)
				}
				for _, step := range []func(context.Context) error{s.set.Open, s.set.Runtime} {
					if err := step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				f, err := s.virtualFlow()
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			if _, err := compose().Run(t.Context(), flow.Options{}); err != nil { // what is waited for exists
				t.Fatal(err)
			}
			for line := range strings.Lines(compose().String()) {
				id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				alone, err := compose().UpTo(id)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := alone.Run(t.Context(), flow.Options{}); err != nil {
					t.Error(fmt.Errorf("up to task %q: %w", id, err))
				}
			}
		})
	}
}
