package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/golden"
)

const namespace = "shoot--dev--crazy"

func newCluster(t *testing.T) *extension.Cluster {
	t.Helper()
	cluster := &extension.Cluster{
		Name: namespace, Annotations: map[string]string{extensionsv1alpha1.AnnotationGenericKubeconfigSecretName: "generic-token-kubeconfig-12345678"},
		CloudProfile: &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}, Shoot: &corev1beta1.Shoot{},
	}
	cluster.Shoot.Spec.Kubernetes.Version = "1.36.3"
	cluster.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("2Gi")}}
	return cluster
}

func newWorker() *extensionsv1alpha1.Worker {
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crazy"}}
	worker.Spec.Region, worker.Spec.SecretRef = "local", corev1.SecretReference{Namespace: namespace, Name: "cloudprovider"}
	worker.Spec.Pools = []extensionsv1alpha1.WorkerPool{{
		Name: "pool", MachineType: "small", Minimum: 3, Maximum: 5, MaxSurge: intstr.FromInt32(1), Zones: []string{"a", "b"},
		MachineImage:      &extensionsv1alpha1.MachineImage{Name: "local", Version: "2.0.0"},
		UserDataSecretRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "userdata"}, Key: "cloud_config"},
		Labels:            map[string]string{"pool": "pool"}, Annotations: map[string]string{"note": "x"}, Taints: []corev1.Taint{{Key: "t", Effect: "NoSchedule"}},
		NodeAgentSecretName: new("gardener-node-agent-pool-1"), Priority: new(int32(7)),
		MachineControllerManager: &corev1beta1.MachineControllerManagerSettings{
			MachineDrainTimeout: &metav1.Duration{Duration: time.Hour}, MachinePreserveTimeout: &metav1.Duration{Duration: 72 * time.Hour},
			AutoPreserveFailedMachineMax: new(int32(3)), NodeConditions: []string{"A", "B"},
		},
	}}
	return worker
}

func newActuator(t *testing.T) *Actuator {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	userData := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "userdata"}, Data: map[string][]byte{"cloud_config": []byte("#!/bin/bash")}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&machinev1alpha1.MachineDeployment{}).WithObjects(userData).Build()
	return New(Values{Name: "provider-test", Client: c, Reader: c, Clock: testingclock.NewFakePassiveClock(time.Unix(1000, 0)), Delegate: delegate{}})
}

// delegate has an image per version.
type delegate struct{}

func (delegate) Class(_ context.Context, worker *extensionsv1alpha1.Worker, _ *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone string) (*Class, error) {
	image := "registry.example/machine:v" + pool.MachineImage.Version
	return &Class{
		Provider: "test", ProviderSpec: map[string]string{"image": image, "zone": zone}, Hash: []string{image},
		CredentialsSecretRef: &worker.Spec.SecretRef, SecretData: map[string][]byte{"more": []byte("x")},
	}, nil
}

func (delegate) ProviderStatus(_ context.Context, worker *extensionsv1alpha1.Worker, _ *extension.Cluster) (any, error) {
	return map[string]int{"pools": len(worker.Spec.Pools)}, nil
}

// roll updates the status of deployments as the machine-controller-manager does.
func (a *Actuator) roll(t *testing.T, change func(*machinev1alpha1.MachineDeployment)) {
	t.Helper()
	deployments, err := a.deployments(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments {
		n := d.Spec.Replicas
		d.Status = machinev1alpha1.MachineDeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n, ReadyReplicas: n}
		if change != nil {
			change(d)
		}
		if err := a.Client.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

func waits(t *testing.T, err error, reason string) {
	t.Helper()
	var waiting *extension.Wait
	if !errors.As(err, &waiting) || waiting.Reason != reason {
		t.Fatalf("error is %v, want to wait for %q", err, reason)
	}
}

func names[T client.Object](t *testing.T, a *Actuator, list client.ObjectList, items func() []T) []string {
	t.Helper()
	if err := a.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range items() {
		out = append(out, item.GetName())
	}
	return out
}

func classes(t *testing.T, a *Actuator) []string {
	t.Helper()
	list := &machinev1alpha1.MachineClassList{}
	return names(t, a, list, func() (out []*machinev1alpha1.MachineClass) {
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
		return out
	})
}

func TestWorker(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	waits(t, a.Reconcile(t.Context(), worker, cluster),
		`0 of 1 machines of "shoot--dev--crazy-pool-z2" are ready; 0 of 2 machines of "shoot--dev--crazy-pool-z1" are ready`)
	a.roll(t, nil)
	if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
	want := []extensionsv1alpha1.MachineDeployment{
		{Name: namespace + "-pool-z1", Minimum: 2, Maximum: 3, Priority: new(int32(7)), AutoPreserveFailedMachineMax: new(int32(2))},
		{Name: namespace + "-pool-z2", Minimum: 1, Maximum: 2, Priority: new(int32(7)), AutoPreserveFailedMachineMax: new(int32(1))},
	}
	if diff := cmp.Diff(want, worker.Status.MachineDeployments); diff != "" {
		t.Errorf("machineDeployments (-want +got):\n%s", diff)
	}
	if string(worker.Status.ProviderStatus.Raw) != `{"pools":1}` {
		t.Errorf("providerStatus is %s", worker.Status.ProviderStatus.Raw)
	}
	first := classes(t, a)

	// The deployment is scaled: replicas are kept, and machines are not replaced.
	a.roll(t, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Replicas = 3
		if err := a.Client.Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 3, 3, 3
	})
	waits(t, a.Reconcile(t.Context(), worker, cluster), `3 of 2 machines of "shoot--dev--crazy-pool-z2" are ready`) // its maximum
	a.roll(t, nil)
	if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, classes(t, a)); diff != "" {
		t.Errorf("machines are replaced (-want +got):\n%s", diff)
	}

	// New machines.
	worker.Spec.Pools[0].NodeAgentSecretName = new("gardener-node-agent-pool-2")
	a.roll(t, func(d *machinev1alpha1.MachineDeployment) { d.Status.UpdatedReplicas = 0 })
	waits(t, a.Reconcile(t.Context(), worker, cluster),
		`0 of 2 machines of "shoot--dev--crazy-pool-z2" are ready; 0 of 3 machines of "shoot--dev--crazy-pool-z1" are ready`)
	if got := classes(t, a); len(got) != 4 {
		t.Errorf("the old classes were deleted before their machines: %v", got)
	}
	a.roll(t, func(d *machinev1alpha1.MachineDeployment) {
		d.Status.FailedMachines = []machinev1alpha1.MachineSummary{{Name: "m", LastOperation: machinev1alpha1.LastOperation{Type: "Create", Description: "no room", ErrorCode: "ResourceExhausted"}}}
	})
	if err := a.Reconcile(t.Context(), worker, cluster); err == nil || !strings.Contains(err.Error(), `machine "m": no room`) ||
		!cmp.Equal(errorcode.Of(err), []corev1beta1.ErrorCode{corev1beta1.ErrorInfraResourcesDepleted}) {
		t.Errorf("error is %v with codes %v", err, errorcode.Of(err))
	}
	a.roll(t, nil)
	if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
	if got := classes(t, a); len(got) != 2 || cmp.Equal(got, first) {
		t.Errorf("classes are %v", got)
	}

	// Hibernated: all machines are deleted, also those that the status does not count.
	cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
	if err := a.Reconcile(t.Context(), worker, cluster); err == nil {
		t.Error("the pass does not wait for machines")
	}
	a.roll(t, nil)
	terminating := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "terminating"}}
	if err := a.Client.Create(t.Context(), terminating); err != nil {
		t.Fatal(err)
	}
	waits(t, a.Reconcile(t.Context(), worker, cluster), "1 machines are being deleted")
	if err := a.Client.Delete(t.Context(), terminating); err != nil {
		t.Fatal(err)
	}
	if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}

	// Deleted.
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "last"}}
	if err := a.Client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	waits(t, a.Delete(t.Context(), worker, cluster), "1 machines, 0 MachineSets and 2 MachineDeployments are being deleted")
	waits(t, a.ForceDelete(t.Context(), worker, cluster), "1 machines, 0 MachineSets and 0 MachineDeployments are being deleted")
	if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil || machine.Labels["force-deletion"] != "True" {
		t.Errorf("the machine has labels %v, %v", machine.Labels, err)
	}
	if err := a.Client.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	waits(t, a.Delete(t.Context(), worker, cluster), "2 MachineClasses are being deleted")
	if err := a.Delete(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
}

// pools are the names of the MachineDeployments that are not being deleted.
func pools(t *testing.T, a *Actuator) []string {
	t.Helper()
	deployments, err := a.deployments(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(deployments, func(_ string, d *machinev1alpha1.MachineDeployment) bool { return d.DeletionTimestamp != nil })
	return slices.Sorted(maps.Keys(deployments))
}

// The machines of a removed pool are only deleted when there are others for its pods.
func TestRenamedPool(t *testing.T) {
	const before, after = namespace + "-pool-z1", namespace + "-other"
	ready := func(d *machinev1alpha1.MachineDeployment) {}
	for name, tc := range map[string]struct {
		change     func(*machinev1alpha1.MachineDeployment)
		hibernated bool
		none       bool
		want       []string
	}{
		"its machines are not ready": {change: func(d *machinev1alpha1.MachineDeployment) {
			if d.Name == after {
				d.Status.AvailableReplicas = 0
			}
		}, want: []string{after, before, namespace + "-pool-z2"}},
		"one of its machines has failed": {change: func(d *machinev1alpha1.MachineDeployment) {
			if d.Name == after {
				d.Status.FailedMachines = []machinev1alpha1.MachineSummary{{Name: "m"}}
			}
		}, want: []string{after, before, namespace + "-pool-z2"}},
		"there is no room for its machines": {change: func(d *machinev1alpha1.MachineDeployment) {
			if d.Name == after {
				failed := machinev1alpha1.LastOperation{Type: machinev1alpha1.MachineOperationCreate, ErrorCode: "ResourceExhausted"}
				d.Status.FailedMachines = []machinev1alpha1.MachineSummary{{Name: "m", LastOperation: failed}}
			}
		}, want: []string{after}},
		"its machines are ready":      {change: ready, want: []string{after}},
		"it has no machines for now":  {change: func(d *machinev1alpha1.MachineDeployment) { d.Status.ObservedGeneration-- }, hibernated: true, want: []string{after}},
		"there are no pools any more": {change: ready, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
			_ = a.Reconcile(t.Context(), worker, cluster)
			a.roll(t, nil)
			if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
				t.Fatal(err)
			}
			worker.Spec.Pools[0].Name, worker.Spec.Pools[0].Zones = "other", nil
			if tc.none {
				worker.Spec.Pools = nil
			}
			cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &tc.hibernated}
			if err := a.Reconcile(t.Context(), worker, cluster); err == nil {
				t.Error("it waits for nothing")
			}
			a.roll(t, tc.change)
			_ = a.Reconcile(t.Context(), worker, cluster)
			if diff := cmp.Diff(tc.want, pools(t, a)); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}

// What the cluster-autoscaler decides is kept within the bounds of the pool: also while a pass is under way, and after a hibernation it begins again.
func TestReplicasAreThoseOfTheClusterAutoscaler(t *testing.T) {
	const name = namespace + "-pool-z1" // from 2 to 3
	for title, tc := range map[string]struct {
		before   int32
		minimum  int32
		maximum  int32
		sleeping bool
		want     int32
	}{
		"within the bounds":       {before: 3, minimum: 3, maximum: 5, want: 3},
		"above a new maximum":     {before: 3, minimum: 2, maximum: 3, want: 2},
		"below a new minimum":     {before: 2, minimum: 6, maximum: 8, want: 3},
		"a fixed size":            {before: 3, minimum: 2, maximum: 2, want: 1},
		"hibernated":              {before: 3, minimum: 3, maximum: 5, sleeping: true},
		"waking up":               {before: 0, minimum: 3, maximum: 5, want: 2},
		"waking up, from nothing": {before: 0, minimum: 0, maximum: 5},
	} {
		t.Run(title, func(t *testing.T) {
			a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
			_ = a.Reconcile(t.Context(), worker, cluster)
			a.scale(t, name, tc.before)
			worker.Spec.Pools[0].Minimum, worker.Spec.Pools[0].Maximum = tc.minimum, tc.maximum
			cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &tc.sleeping}
			_ = a.Reconcile(t.Context(), worker, cluster)
			deployments, err := a.deployments(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			if got := deployments[name].Spec.Replicas; got != tc.want {
				t.Errorf("%d replicas, want %d", got, tc.want)
			}
		})
	}

	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	_ = a.Reconcile(t.Context(), worker, cluster)
	scaled := false
	a.Reader = interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one is
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if _, ok := list.(*machinev1alpha1.MachineDeploymentList); ok && !scaled {
				scaled = true
				a.scale(t, name, 3) //nolint:contextcheck // a helper of tests
			}
			return err
		},
	})
	if err := a.Reconcile(t.Context(), worker, cluster); !apierrors.IsConflict(err) {
		t.Errorf("a deployment that is scaled meanwhile: error is %v, want a conflict", err)
	}
	_ = a.Reconcile(t.Context(), worker, cluster)
	deployments, err := a.deployments(t.Context(), namespace)
	if err != nil || deployments[name].Spec.Replicas != 3 {
		t.Errorf("%d replicas, %v", deployments[name].Spec.Replicas, err)
	}
}

// scale changes the replicas of a deployment as the cluster-autoscaler does.
func (a *Actuator) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	d := &machinev1alpha1.MachineDeployment{}
	if err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Replicas = replicas
	if err := a.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// The gardenlet waits until MachineDeployments are reported for its last operation. Other passes change nothing.
func TestMachineDeploymentsAreReportedInEachOperation(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	operation := func(state corev1beta1.LastOperationState, progress int32) {
		worker.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state, Progress: progress}
	}
	for i, tc := range []struct {
		state    corev1beta1.LastOperationState
		progress int32
		change   bool
		reports  bool
	}{
		{corev1beta1.LastOperationStateProcessing, 1, false, true},
		{corev1beta1.LastOperationStateProcessing, 50, false, false},
		{corev1beta1.LastOperationStateError, 50, false, false},
		{corev1beta1.LastOperationStateProcessing, 1, false, true},
		{corev1beta1.LastOperationStateProcessing, 50, true, true},
	} {
		now := time.Unix(int64(2000+i), 0)
		a.Clock = testingclock.NewFakePassiveClock(now)
		operation(tc.state, tc.progress)
		if tc.change {
			worker.Spec.Pools[0].Maximum++
		}
		_ = a.Reconcile(t.Context(), worker, cluster)
		if got := worker.Status.MachineDeploymentsLastUpdateTime.Time.Equal(now); got != tc.reports {
			t.Errorf("pass %d reports: %t, want %t", i, got, tc.reports)
		}
	}
}

// The first pass of an operation may fail before it reports MachineDeployments. The next one does, with the error still in the status.
func TestMachineDeploymentsAreReportedAfterAFailedPass(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	worker.Annotations = map[string]string{}
	worker.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateError, Progress: 50,
	}
	for i, tc := range []struct {
		requested, now int64
		reports        bool
	}{{1000, 1001, true}, {1000, 1010, false}, {1020, 1025, true}, {1020, 1030, false}} {
		now := time.Unix(tc.now, 0)
		a.Clock = testingclock.NewFakePassiveClock(now)
		worker.Annotations["gardener.cloud/timestamp"] = time.Unix(tc.requested, 5).UTC().Format(time.RFC3339Nano)
		_ = a.Reconcile(t.Context(), worker, cluster)
		if got := worker.Status.MachineDeploymentsLastUpdateTime.Time.Equal(now); got != tc.reports {
			t.Errorf("pass %d reports: %t, want %t", i, got, tc.reports)
		}
	}
}

// Errors that only a change by the user fixes are not retried all the time, so the user has to see their code.
func TestMachineErrorCodes(t *testing.T) {
	for _, tc := range []struct {
		operation machinev1alpha1.MachineOperationType
		code      string
		want      []corev1beta1.ErrorCode
	}{
		{"Create", "ResourceExhausted", []corev1beta1.ErrorCode{"ERR_INFRA_RESOURCES_DEPLETED"}},
		{"Create", "InvalidArgument", []corev1beta1.ErrorCode{"ERR_CONFIGURATION_PROBLEM"}},
		{"Create", "Unauthenticated", []corev1beta1.ErrorCode{"ERR_INFRA_UNAUTHENTICATED"}},
		{"Delete", "PermissionDenied", []corev1beta1.ErrorCode{"ERR_INFRA_UNAUTHORIZED"}},
		{"Create", "Unavailable", nil},
		{"HealthCheck", "PermissionDenied", nil},
	} {
		deployment := &machinev1alpha1.MachineDeployment{Status: machinev1alpha1.MachineDeploymentStatus{
			Replicas: 1, UpdatedReplicas: 1,
			FailedMachines: []machinev1alpha1.MachineSummary{{Name: "m", LastOperation: machinev1alpha1.LastOperation{Type: tc.operation, ErrorCode: tc.code}}},
		}}
		err := progress([]machines{{deployment: deployment}}, map[string]*machinev1alpha1.MachineDeployment{"": deployment}, nil)
		if err == nil || !cmp.Equal(errorcode.Of(err), tc.want) {
			t.Errorf("%s, %s: %v with codes %v, want %v", tc.operation, tc.code, err, errorcode.Of(err), tc.want)
		}
		deployment.Status.UpdatedReplicas = 0 // the machine is being replaced
		err = progress([]machines{{deployment: deployment}}, map[string]*machinev1alpha1.MachineDeployment{"": deployment}, nil)
		if err == nil || len(errorcode.Of(err)) > 0 {
			t.Errorf("%s, %s of an old machine: %v with codes %v, want none", tc.operation, tc.code, err, errorcode.Of(err))
		}
	}
}

// Failed machines that are kept for inspection are not waited for; others are.
func TestWaitsForNoPreservedMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		available, preserved int32
		failed               int
		want                 bool
	}{
		"all are ready":               {available: 3},
		"one is kept":                 {available: 2, preserved: 1, failed: 1},
		"one is kept, one is new":     {available: 1, preserved: 1, failed: 1, want: true},
		"one is kept, one has failed": {available: 2, preserved: 1, failed: 2, want: true},
		"one has failed":              {available: 3, failed: 1, want: true},
	} {
		deployment := &machinev1alpha1.MachineDeployment{}
		deployment.Spec.Replicas = 3
		deployment.Status = machinev1alpha1.MachineDeploymentStatus{
			Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: tc.available, PreservedFailedReplicas: tc.preserved,
			FailedMachines: make([]machinev1alpha1.MachineSummary, tc.failed),
		}
		err := progress([]machines{{deployment: deployment}}, map[string]*machinev1alpha1.MachineDeployment{"": deployment}, nil)
		if (err != nil) != tc.want {
			t.Errorf("%s: error is %v, want one: %t", name, err, tc.want)
		}
	}
}

// A user may select the nodes of a pool for their update in place long after the Worker was reconciled, so it is ready before.
func TestWaitsForNoSelection(t *testing.T) {
	for by, want := range map[machinev1alpha1.OrchestrationType]bool{machinev1alpha1.OrchestrationTypeAuto: true, machinev1alpha1.OrchestrationTypeManual: false} {
		deployment := &machinev1alpha1.MachineDeployment{}
		deployment.Spec.Replicas = 1
		deployment.Spec.Strategy.InPlaceUpdate = &machinev1alpha1.InPlaceUpdateMachineDeployment{OrchestrationType: by}
		deployment.Status = machinev1alpha1.MachineDeploymentStatus{Replicas: 1, AvailableReplicas: 1}
		err := progress([]machines{{deployment: deployment}}, map[string]*machinev1alpha1.MachineDeployment{"": deployment}, nil)
		if (err != nil) != want {
			t.Errorf("%s: error is %v, want one: %t", by, err, want)
		}
	}
}

// A pool that is added again while its machines are being deleted is not ready: its replacement has to stay.
func TestPoolThatComesBack(t *testing.T) {
	deployment := &machinev1alpha1.MachineDeployment{}
	deployment.Name = "pool"
	all, existing := []machines{{deployment: deployment.DeepCopy()}}, map[string]*machinev1alpha1.MachineDeployment{"pool": deployment}
	if err := progress(all, existing, nil); err != nil {
		t.Fatal(err)
	}
	deployment.DeletionTimestamp = &metav1.Time{}
	waits(t, progress(all, existing, nil), `MachineDeployment "pool" is being deleted, and will be created again`)
}

// What the machine-controller-manager has left in a hibernated shoot is waited for, by a reconciliation as well as by the deletion. A deployment without
// machines is not: the machine-controller-manager of a shoot that was created hibernated does not run.
func TestHibernatedWorker(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*machinev1alpha1.MachineDeployment)
		left       []client.Object // besides the MachineDeployments
		reconciles string          // what a reconciliation waits for
		deletes    string          // what the deletion waits for
	}{
		"nothing": {deletes: "0 machines, 0 MachineSets and 2 MachineDeployments are being deleted"},
		"one that was created hibernated": {
			change:  func(d *machinev1alpha1.MachineDeployment) { d.Generation = d.Status.ObservedGeneration + 1 },
			deletes: "0 machines, 0 MachineSets and 2 MachineDeployments are being deleted",
		},
		"a set without its deployment": {
			left: []client.Object{&machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "outlived", Finalizers: []string{machinev1alpha1.MCMFinalizerName},
			}}},
			deletes: "0 machines, 1 MachineSets and 2 MachineDeployments are being deleted",
		},
		"a set that may still create a machine": {
			left: []client.Object{&machinev1alpha1.MachineSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late", Finalizers: []string{machinev1alpha1.MCMFinalizerName}},
				Spec:       machinev1alpha1.MachineSetSpec{Replicas: 1},
			}},
			reconciles: "1 machines are being deleted", deletes: "0 machines, 1 MachineSets and 2 MachineDeployments are being deleted",
		},
		"a machine": {
			left:       []client.Object{&machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}}},
			reconciles: "1 machines are being deleted",
			deletes:    "1 machines, 0 MachineSets and 2 MachineDeployments are being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
			cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
			if err := a.Reconcile(t.Context(), worker, cluster); err != nil {
				t.Fatal(err)
			}
			deployments, err := a.deployments(t.Context(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range deployments {
				d.Finalizers = []string{machinev1alpha1.MCMFinalizerName}
				if tc.change != nil {
					tc.change(d)
				}
				if err := a.Client.Update(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			for _, o := range tc.left {
				if err := a.Client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}

			if err := a.Reconcile(t.Context(), worker, cluster); tc.reconciles == "" && err != nil {
				t.Fatal(err)
			} else if tc.reconciles != "" {
				waits(t, err, tc.reconciles)
			}
			for range 2 {
				waits(t, a.Delete(t.Context(), worker, cluster), tc.deletes)
			}
		})
	}
}

func TestWorkerObjects(t *testing.T) {
	worker := newWorker()
	inPlace := worker.Spec.Pools[0].DeepCopy()
	inPlace.Name, inPlace.Zones, inPlace.UpdateStrategy = "manual", nil, new(corev1beta1.ManualInPlaceUpdate)
	worker.Spec.Pools = append(worker.Spec.Pools, *inPlace)
	all, err := newActuator(t).render(t.Context(), worker, newCluster(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, m := range all {
		objects = append(objects, m.secret, m.class, m.deployment)
	}
	golden.Objects(t, "worker.yaml", objects, machinev1alpha1.AddToScheme)
}

// What the nodes of a pool offer beyond their machines is in its classes, and a change of it replaces no machine.
func TestVirtualCapacity(t *testing.T) {
	var before string
	for _, number := range []string{"1", "2"} {
		worker := newWorker()
		virtual := corev1.ResourceList{"example.com/license": resource.MustParse(number)}
		worker.Spec.Pools[0].NodeTemplate = &extensionsv1alpha1.NodeTemplate{
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}, VirtualCapacity: virtual,
		}
		all, err := newActuator(t).render(t.Context(), worker, newCluster(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		class := all[0].class
		if diff := cmp.Diff(virtual, class.NodeTemplate.VirtualCapacity); diff != "" || class.NodeTemplate.Capacity.Cpu().String() != "3" {
			t.Errorf("capacity is %v, virtual capacity (-want +got):\n%s", class.NodeTemplate.Capacity, diff)
		}
		if before != "" && class.Name != before {
			t.Errorf("the class is %s after %s", class.Name, before)
		}
		before = class.Name
	}
}

// A rotation that begins while an operation is repeated is for the next one: nodes are drained when they can get the new credentials. An operation counts
// from the pass that has written the deployments.
func TestRotationDuringAnOperation(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	pool := &worker.Spec.Pools[0]
	pool.UpdateStrategy = new(corev1beta1.AutoInPlaceUpdate)
	request := func(at string) { worker.Annotations = map[string]string{"gardener.cloud/timestamp": at} }
	rotate := func(at int64) {
		cluster.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: new(metav1.Unix(at, 0))},
		}}
	}
	var before string
	reconcile := func(changes bool) {
		t.Helper()
		var waiting *extension.Wait
		if err := a.Reconcile(t.Context(), worker, cluster); !errors.As(err, &waiting) {
			t.Fatalf("error is %v, want to wait for machines", err)
		}
		deployments, err := a.deployments(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		d := deployments[pool1]
		after := d.Spec.Template.Spec.Class.Name + " " + d.Annotations[extension.AnnotationInPlaceHash]
		if (after != before) != changes {
			t.Errorf("class and hash are %q after %q", after, before)
		}
		if !slices.Contains(classes(t, a), d.Spec.Template.Spec.Class.Name) {
			t.Errorf("class %q does not exist", d.Spec.Template.Spec.Class.Name)
		}
		before = after
	}
	request("1")
	reconcile(true)
	rotate(1)
	reconcile(false)
	request("2")
	pool.MachineType = "unknown"
	if err := a.Reconcile(t.Context(), worker, cluster); err == nil {
		t.Fatal("an unknown machine type is not refused")
	}
	pool.MachineType = "small"
	reconcile(true)
	rotate(2)
	reconcile(false)
	request("3")
	reconcile(true)
	request("4")
	reconcile(false)
	rotate(3)
	reconcile(false)
}

// The numbers of a pool are distributed to its zones. A zone with zero can be updated nevertheless, as the pool allows.
func TestWorkerUpdates(t *testing.T) {
	type numbers struct{ surge, unavailable [2]int32 }
	for name, tc := range map[string]struct {
		surge, unavailable int32
		want               numbers
	}{
		"one more at a time is one more in each zone":         {1, 0, numbers{[2]int32{1, 1}, [2]int32{0, 0}}},
		"none more at a time is none more in each zone":       {0, 1, numbers{[2]int32{0, 0}, [2]int32{1, 1}}},
		"where both are allowed, none is missing in the rest": {1, 1, numbers{[2]int32{1, 1}, [2]int32{1, 0}}},
		"what is enough for all zones is shared":              {2, 2, numbers{[2]int32{1, 1}, [2]int32{1, 1}}},
		"neither is allowed, but machines are replaced":       {0, 0, numbers{[2]int32{0, 0}, [2]int32{1, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			worker := newWorker()
			worker.Spec.Pools[0].MaxSurge, worker.Spec.Pools[0].MaxUnavailable = intstr.FromInt32(tc.surge), intstr.FromInt32(tc.unavailable)
			all, err := newActuator(t).render(t.Context(), worker, newCluster(t), nil)
			if err != nil || len(all) != 2 {
				t.Fatalf("%d parts, %v", len(all), err)
			}
			var got numbers
			for i, m := range all {
				update := m.deployment.Spec.Strategy.RollingUpdate
				got.surge[i], got.unavailable[i] = update.MaxSurge.IntVal, update.MaxUnavailable.IntVal
			}
			if got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWorkerRefuses(t *testing.T) {
	worker := newWorker()
	worker.Spec.Pools[0].MachineType = "large"
	err := newActuator(t).Reconcile(t.Context(), worker, newCluster(t))
	if err == nil || !strings.Contains(err.Error(), "spec.pools[0].machineType") || !errorcode.NeedsUser(errorcode.Of(err)) {
		t.Errorf("error is %v with codes %v", err, errorcode.Of(err))
	}
}
