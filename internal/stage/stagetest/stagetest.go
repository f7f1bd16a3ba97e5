// Package stagetest has fakes of the clusters that stages work with.
package stagetest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/flow"
)

// Namespace and Name are those of the control plane and of the Shoot.
const Namespace, Name = "shoot--dev--crazy-botany", "crazy-botany"

// Clusters are a garden, a seed and a shoot without controllers: their resources are reconciled when they are read.
type Clusters struct {
	Garden, Seed, Shoot client.WithWatch
}

// New returns clusters of which only the gateway of the seed exists.
func New(t *testing.T) *Clusters {
	t.Helper()
	scheme := Scheme(t)
	c := &Clusters{Garden: newCluster(scheme), Seed: newCluster(scheme), Shoot: newCluster(scheme)}
	ready := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"},
		Status:     gatewayv1.GatewayStatus{Addresses: []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}}},
	}
	if err := c.Seed.Create(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	return c
}

// Run returns what the tasks of stages work with.
func (c *Clusters) Run() *stage.Run {
	return &stage.Run{
		SeedAPI: c.Seed, GardenCache: c.Garden, GardenAPI: c.Garden, Namespace: Namespace, Name: Name, FieldManager: "gardenlet",
		Target: stage.NewConnectedTarget(c.Shoot, Discover), Clock: clock.RealClock{},
	}
}

// Discover returns a kind of users.
func Discover(*rest.Config) ([]*metav1.APIResourceList, error) {
	return []*metav1.APIResourceList{{
		GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Verbs: metav1.Verbs{"get", "list", "watch"}}},
	}}, nil
}

// Scheme returns a scheme with all kinds of the clusters.
func Scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, corev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
		druidv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, gatewayv1.Install, apiregistrationv1.AddToScheme, securityv1alpha1.AddToScheme,
		apiextensionsv1.AddToScheme, operatorv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme, gardencorev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	// The fake of an API server would add these when they are first listed, while tasks that run meanwhile read the scheme.
	for group, kinds := range map[string][]string{
		"autoscaling.k8s.io/v1":                 {"VerticalPodAutoscaler"},
		"snapshot.storage.k8s.io/v1":            {"VolumeSnapshot", "VolumeSnapshotContent"},
		"groupsnapshot.storage.k8s.io/v1":       {"VolumeGroupSnapshot", "VolumeGroupSnapshotContent"},
		"groupsnapshot.storage.k8s.io/v1beta2":  {"VolumeGroupSnapshot", "VolumeGroupSnapshotContent"},
		"groupsnapshot.storage.k8s.io/v1beta1":  {"VolumeGroupSnapshot", "VolumeGroupSnapshotContent"},
		"groupsnapshot.storage.k8s.io/v1alpha1": {"VolumeGroupSnapshot", "VolumeGroupSnapshotContent"},
	} {
		for _, kind := range kinds {
			gvk := schema.FromAPIVersionAndKind(group, kind)
			scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
			gvk.Kind += "List"
			scheme.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
		}
	}
	return scheme
}

// Generate generates all credentials of a set, and returns them.
func Generate(t *testing.T, set *credentials.Set) credentials.Generated {
	t.Helper()
	for _, step := range []func(context.Context) error{set.Open, set.Runtime, set.Etcd, set.Rest} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := set.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// RunTask runs the task with an ID. It fails the test if there is none.
func RunTask(ctx context.Context, t *testing.T, tasks []flow.Task, id string) error {
	t.Helper()
	for _, task := range tasks {
		if task.ID == id {
			return task.Run(ctx)
		}
	}
	t.Fatalf("there is no task %q", id)
	return nil
}

// RunTaskUntilIdle is RunTask with the context of UntilIdle.
func RunTaskUntilIdle(t *testing.T, tasks []flow.Task, id string) error {
	t.Helper()
	return UntilIdle(t, func(ctx context.Context) error { return RunTask(ctx, t, tasks, id) })
}

// UntilIdle runs a function with a context that expires as soon as everything waits, however busy the computer is: what can be done is done before, and a
// wait for what does not happen returns context.DeadlineExceeded. In the function, time is that of package synctest.
func UntilIdle(t *testing.T, run func(context.Context) error) error {
	t.Helper()
	var err error
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err = run(ctx)
	})
	return err
}

// newCluster returns a cluster in which resources are reconciled when they are read.
func newCluster(scheme *runtime.Scheme) client.WithWatch {
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&corev1beta1.Shoot{}, &operatorv1alpha1.Garden{}, &operatorv1alpha1.Extension{}, &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.Worker{},
		&extensionsv1alpha1.ContainerRuntime{},
	)
	for _, kind := range []client.Object{
		&corev1.Namespace{}, &corev1.Secret{}, &gatewayv1.Gateway{}, &appsv1.Deployment{}, &druidv1alpha1.Etcd{}, &resourcesv1alpha1.ManagedResource{},
		&druidv1alpha1.EtcdCopyBackupsTask{}, &corev1beta1.BackupEntry{},
		&extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.Network{},
		&extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.Worker{}, &extensionsv1alpha1.Extension{},
		&extensionsv1alpha1.ContainerRuntime{},
		&extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupEntry{},
	} {
		builder = builder.WithIndex(kind, "metadata.name", byName)
	}
	builder = builder.WithIndex(&corev1.ConfigMap{}, "metadata.name", byName).WithIndex(&corev1.Secret{}, "type", func(object client.Object) []string {
		return []string{string(object.(*corev1.Secret).Type)} //nolint:forcetypeassert // the kind of the index
	})
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, object, opts...)
			if _, ok := object.(extensionsv1alpha1.Object); ok && err == nil {
				reconcile(object)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				reconcile(item)
				return nil
			})
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			events, err := WatchWithoutList(ctx, c, list, opts...)
			if err != nil {
				return nil, err
			}
			return watchReconciled(events), nil
		},
	}).Build()
}

// reconciledWatch is a watch whose objects are reconciled. Unlike that of watch.Filter, its goroutine ends when it is stopped before an event was read.
type reconciledWatch struct {
	watch.Interface
	events chan watch.Event
	done   chan struct{}
	stop   sync.Once
}

func watchReconciled(source watch.Interface) watch.Interface {
	w := &reconciledWatch{Interface: source, events: make(chan watch.Event), done: make(chan struct{})}
	go func() {
		defer close(w.events)
		for event := range source.ResultChan() {
			reconcile(event.Object)
			select {
			case w.events <- event:
			case <-w.done:
				return
			}
		}
	}()
	return w
}

// ResultChan implements watch.Interface.
func (w *reconciledWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *reconciledWatch) Stop() {
	w.stop.Do(func() { close(w.done) })
	w.Interface.Stop()
}

// WatchWithoutList refuses watches that begin with a list, which fake clients do not support.
func WatchWithoutList(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if raw := options.Raw; raw != nil && raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
	}
	return c.Watch(ctx, list, opts...)
}

// reconcile sets the status of an object that is read as its controller would have.
func reconcile(object runtime.Object) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		replicas := ptr.Deref(o.Spec.Replicas, 1)
		o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas}
	case *druidv1alpha1.Etcd:
		o.Status = druidv1alpha1.EtcdStatus{ObservedGeneration: &o.Generation, Ready: new(true)}
	case *druidv1alpha1.EtcdCopyBackupsTask:
		o.Status = druidv1alpha1.EtcdCopyBackupsTaskStatus{ObservedGeneration: &o.Generation, Conditions: []druidv1alpha1.Condition{
			{Type: druidv1alpha1.EtcdCopyBackupsTaskSucceeded, Status: druidv1alpha1.ConditionTrue},
		}}
	case extensionsv1alpha1.Object:
		annotations := o.GetAnnotations()
		operation := corev1beta1.LastOperationTypeReconcile
		switch annotations["gardener.cloud/operation"] {
		case "wait-for-state":
			return
		case "migrate":
			operation = corev1beta1.LastOperationTypeMigrate
		case "restore":
			operation = corev1beta1.LastOperationTypeRestore
		}
		delete(annotations, "gardener.cloud/operation")
		o.SetAnnotations(annotations)
		o.GetExtensionStatus().SetObservedGeneration(o.GetGeneration())
		requested, _ := time.Parse(time.RFC3339Nano, annotations["gardener.cloud/timestamp"]) // zero without a request
		o.GetExtensionStatus().SetLastOperation(&corev1beta1.LastOperation{
			Type: operation, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(requested),
		})
		if config, ok := o.(*extensionsv1alpha1.OperatingSystemConfig); ok {
			config.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: config.Namespace, Name: config.Name}}
		}
		if worker, ok := o.(*extensionsv1alpha1.Worker); ok {
			worker.Status.MachineDeployments = nil
			for _, pool := range worker.Spec.Pools {
				worker.Status.MachineDeployments = append(worker.Status.MachineDeployments, extensionsv1alpha1.MachineDeployment{
					Name: worker.Namespace + "-" + pool.Name, Minimum: pool.Minimum, Maximum: pool.Maximum,
				})
			}
		}
	case *resourcesv1alpha1.ManagedResource:
		o.Status.ObservedGeneration = o.Generation
		o.Status.Conditions = []corev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse},
		}
	}
}
