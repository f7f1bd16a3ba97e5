package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/pkg/flow"
)

// stage is a garden, a seed and a shoot without any controllers: what others do with the objects of a flow is done at once.
type stage struct {
	garden, seed, shoot client.WithWatch
	*reconciler
}

func newStage(t *testing.T) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
		druidv1alpha1.AddToScheme, gatewayv1.Install, apiregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{garden: newCluster(scheme), seed: newCluster(scheme), shoot: newCluster(scheme)}
	ready := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"},
		Status:     gatewayv1.GatewayStatus{Addresses: []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}}},
	}
	if err := s.seed.Create(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	s.reconciler = &reconciler{
		Values: Values{
			SeedName: "here", GardenClient: s.garden, SeedClient: s.seed, Images: images, Gardener: corev1beta1.Gardener{Version: "v1"},
			Connect: func(*rest.Config) (client.WithWatch, error) { return s.shoot, nil },
			Discover: func(*rest.Config) ([]*metav1.APIResourceList, error) {
				return []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Verbs: metav1.Verbs{"get", "list", "watch"}}}}}, nil
			},
			Clock:  clock.RealClock{},
			Config: gardenletconfigv1alpha1.ShootControllerConfiguration{DNSEntryTTLSeconds: new(int64(120))},
		},
		gardenClient: s.garden, live: s.garden,
	}
	return s
}

// newCluster is a cluster in which everything that is ordered is there at once.
func newCluster(scheme *runtime.Scheme) client.WithWatch {
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1beta1.Shoot{}).
		WithIndex(&corev1beta1.Project{}, "spec.namespace", func(object client.Object) []string {
			return []string{deref(object.(*corev1beta1.Project).Spec.Namespace)} //nolint:forcetypeassert // the kind of the index
		})
	for _, kind := range []client.Object{
		&corev1.Namespace{}, &gatewayv1.Gateway{}, &appsv1.Deployment{}, &druidv1alpha1.Etcd{}, &resourcesv1alpha1.ManagedResource{},
		&extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.Network{},
		&extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.Worker{}, &extensionsv1alpha1.Extension{},
	} {
		builder = builder.WithIndex(kind, "metadata.name", byName)
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, object, opts...)
			if _, ok := object.(extensionsv1alpha1.Object); ok && err == nil {
				fulfil(object)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				fulfil(item)
				return nil
			})
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			events, err := watchWithoutList(ctx, c, list, opts...)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				fulfil(event.Object)
				return event, true
			}), nil
		},
	}).Build()
}

// watchWithoutList refuses watches that begin with a list, which these clusters cannot do.
func watchWithoutList(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if raw := options.Raw; raw != nil && raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
	}
	return c.Watch(ctx, list, opts...)
}

// fulfil makes what is read be as those who work on it would have left it.
func fulfil(object runtime.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{
			ObservedGeneration: o.Generation, Replicas: *o.Spec.Replicas, UpdatedReplicas: *o.Spec.Replicas, AvailableReplicas: *o.Spec.Replicas,
		}
	case *druidv1alpha1.Etcd:
		o.Status = druidv1alpha1.EtcdStatus{ObservedGeneration: &o.Generation, Ready: new(true)}
	case extensionsv1alpha1.Object:
		annotations := o.GetAnnotations()
		delete(annotations, "gardener.cloud/operation")
		o.SetAnnotations(annotations)
		o.GetExtensionStatus().SetObservedGeneration(o.GetGeneration())
		o.GetExtensionStatus().SetLastOperation(&corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded})
		if config, ok := o.(*extensionsv1alpha1.OperatingSystemConfig); ok {
			config.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: config.Namespace, Name: config.Name}}
		}
	case *resourcesv1alpha1.ManagedResource:
		o.Status.ObservedGeneration = o.Generation
		o.Status.Conditions = []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue},
		}
	}
}

// TestInterruption stops each flow after each task, begins again from the start, and expects that the end is the same every time.
func TestInterruption(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds, as the fake of an API server is slow to apply")
	}
	logf.SetLogger(logr.Discard())
	workerless := func(w *world) { w.shoot.Spec.Provider.Workers, w.extensions = nil, nil }
	workers := func(w *world) {
		w.shoot.Spec.Provider = corev1beta1.Provider{Type: "local", WorkersSettings: &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}} // its key takes seconds
		w.shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
			Name: "a", Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}},
			CRI: &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD},
		}}
		w.shoot.Spec.Networking = &corev1beta1.Networking{Type: new("local"), Pods: new("10.5.0.0/16"), Services: new("10.4.0.0/16"), Nodes: new("10.6.0.0/16")}
	}
	for name, test := range map[string]struct {
		change func(*world)
		// every is after how many tasks one run is interrupted, again and again. Zero means a run of its own for each interruption.
		every int
		// before is what there is when the flow begins.
		before, flow func(*reconciler, *world) (*flow.Flow, error)
	}{
		"creation":              {change: workerless, flow: (*reconciler).reconcileFlow},
		"deletion":              {change: workerless, before: (*reconciler).reconcileFlow, flow: (*reconciler).deletionFlow},
		"creation with workers": {change: workers, every: 4, flow: (*reconciler).reconcileFlow},
		"deletion with workers": {change: workers, every: 4, before: (*reconciler).reconcileFlow, flow: (*reconciler).deletionFlow},
		"deletion by force":     {change: workers, every: 4, before: (*reconciler).reconcileFlow, flow: (*reconciler).forcedFlow},
		// It is deleted before anything but the namespace was made.
		"deletion of what was begun": {change: workerless, before: func(r *reconciler, w *world) (*flow.Flow, error) {
			return compose("start", (&hosted{reconciler: r, world: w}).foundation()[:1])
		}, flow: (*reconciler).deletionFlow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := example()
			test.change(w)
			w.seed.Spec.Backup = nil
			w.shoot.Spec.Kubernetes.Version = "1.36.3"
			w.cloudProfile, w.seed.Name, w.identity = &corev1beta1.CloudProfile{}, "here", "id"
			w.shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"10.4.0.0/16"}}
			begin := func(t *testing.T) *stage {
				t.Helper()
				s := newStage(t)
				if test.before != nil {
					s.run(t, test.before, w, -1)
				}
				return s
			}
			s := begin(t)
			total := s.run(t, test.flow, w, -1)
			want := s.objects(t)
			runs, step := total, total
			if test.every > 0 {
				runs, step = 1, test.every
			}
			for first := range runs {
				t.Run(fmt.Sprintf("after %d tasks", first), func(t *testing.T) {
					t.Parallel()
					s := begin(t)
					for after := first; after < total; after += step {
						s.run(t, test.flow, w, after)
					}
					s.run(t, test.flow, w, -1)
					if diff := cmp.Diff(want, s.objects(t)); diff != "" {
						t.Errorf("what there is in the end (-uninterrupted +interrupted):\n%s", diff)
					}
				})
			}
		})
	}
}

// run runs a flow and stops it when a number of tasks are done; a negative number does not stop it. It returns how many there are.
func (s *stage) run(t *testing.T, composed func(*reconciler, *world) (*flow.Flow, error), w *world, after int) (total int) {
	t.Helper()
	f, err := composed(s.reconciler, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = f.Run(ctx, flow.Options{Progress: func(p flow.Progress) {
		if total = p.Total; p.Done == after {
			cancel()
		}
	}})
	if err != nil && after < 0 {
		t.Fatal(err)
	}
	return total
}

// objects are what there is, by cluster, kind and name. Names of credentials end in what they depend on, which differs each time.
func (s *stage) objects(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for name, c := range map[string]client.WithWatch{"garden": s.garden, "seed": s.seed, "shoot": s.shoot} {
		for gvk := range c.Scheme().AllKnownTypes() {
			if !strings.HasSuffix(gvk.Kind, "List") || gvk.Version == "__internal" || gvk.Group == "" && gvk.Kind == "APIGroupList" {
				continue
			}
			object, err := c.Scheme().New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			list, ok := object.(client.ObjectList)
			if !ok || c.List(t.Context(), list) != nil {
				continue
			}
			for _, item := range namesIn(t, list) {
				count[name+" "+gvk.GroupKind().String()+" "+item]++
			}
		}
	}
	if len(count) == 0 {
		t.Fatal("nothing was made")
	}
	return count
}

func namesIn(t *testing.T, list client.ObjectList) []string {
	t.Helper()
	names := map[string]bool{}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		t.Fatal(err)
	}
	items, _ := raw["items"].([]any)
	for _, item := range items {
		metadata := item.(map[string]any)["metadata"].(map[string]any) //nolint:forcetypeassert // objects have metadata
		name := fmt.Sprint(metadata["name"])
		if labels, ok := metadata["labels"].(map[string]any); ok && labels["name"] != nil && labels["managed-by"] == "secrets-manager" {
			name = fmt.Sprint(labels["name"])
		} else if i := strings.LastIndex(name, "-"); i > 0 && len(name)-i == 9 {
			name = name[:i]
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
