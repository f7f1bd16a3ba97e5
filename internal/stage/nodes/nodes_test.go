package nodes

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
)

func TestOutdated(t *testing.T) {
	node := func(name, secret, done string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"worker.gardener.cloud/gardener-node-agent-secret-name": secret},
			Annotations: map[string]string{"checksum/cloud-config-data": done},
		}}
		if change != nil {
			change(n)
		}
		return n
	}
	desired := map[string]string{"pool": "new"}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"no nodes":          {},
		"done":              {nodes: []*corev1.Node{node("a", "pool", "new", nil)}},
		"outdated":          {nodes: []*corev1.Node{node("b", "pool", "old", nil), node("a", "pool", "", nil)}, want: "2 nodes do not have their new configuration yet: a, b"},
		"without a label":   {nodes: []*corev1.Node{node("a", "", "", nil)}},
		"of a deleted pool": {nodes: []*corev1.Node{node("a", "gone", "old", nil)}},
		"waiting for its update": {nodes: []*corev1.Node{node("a", "pool", "old", func(n *corev1.Node) {
			n.Labels["node.machine.sapcloud.io/candidate-for-update"] = "true"
		})}},
		"about to be replaced": {nodes: []*corev1.Node{node("a", "pool", "old", func(n *corev1.Node) { n.Spec.Unschedulable = true })}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := outdated(tc.nodes, desired); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("outdated() is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNodeLocalDNSIsDeletedAfterItsLastNode(t *testing.T) {
	scheme := stagetest.Scheme(t)
	for name, tc := range map[string]struct {
		enabled     bool
		label, want string
	}{
		"it is enabled":                   {enabled: true, want: "shoot-core-node-local-dns"},
		"it is not, and no node has it":   {label: "false"},
		"it is not, and an old node does": {label: "true", want: "shoot-core-node-local-dns"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&resourcesv1alpha1.ManagedResource{
				ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "shoot-core-node-local-dns"},
			}).Build()
			shoot := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"networking.gardener.cloud/node-local-dns-enabled": tc.label}},
			}).Build()
			in := Inputs{Run: &stage.Run{SeedAPI: seed, Namespace: stagetest.Namespace, Target: stage.NewConnectedTarget(shoot, nil)}}
			if tc.enabled {
				in.NodeLocalDNS = func() (nodelocaldns.Values, error) { return nodelocaldns.Values{}, nil }
			}
			clean := func() error {
				if slices.ContainsFunc(Tasks(in), func(task flow.Task) bool { return task.ID == "stale-node-local-dns" }) {
					return stagetest.RunTask(t.Context(), t, Tasks(in), "stale-node-local-dns")
				}
				return nil
			}
			if err := clean(); err != nil {
				t.Fatal(err)
			}
			left := &resourcesv1alpha1.ManagedResourceList{}
			if err := seed.List(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range left.Items {
				got = left.Items[i].Name
			}
			if got != tc.want {
				t.Errorf("there is %q, want %q", got, tc.want)
			}
			if err := clean(); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

func TestKubeProxyIsDeletedWhenItIsDisabled(t *testing.T) {
	for name, tc := range map[string]struct {
		enabled bool
		task    string
		want    []string
	}{
		"it is enabled": {enabled: true, task: "kube-proxy", want: []string{"shoot-core-kube-proxy"}},
		"it is not":     {task: "stale-kube-proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run()}
			if tc.enabled {
				in.KubeProxy = func([]corev1.Node) (kubeproxy.Values, error) { return kubeproxy.Values{}, nil }
			}
			before := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "shoot-core-kube-proxy"}}
			if err := clusters.Seed.Create(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time, it is done already
				if err := stagetest.RunTask(t.Context(), t, Tasks(in), tc.task); err != nil {
					t.Fatal(err)
				}
				list := &resourcesv1alpha1.ManagedResourceList{}
				if err := clusters.Seed.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				var got []string
				for i := range list.Items {
					got = append(got, list.Items[i].Name)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("ManagedResources (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What the tunnel needs runs on nodes, which are deleted when a shoot is hibernated: nothing waits for it.
func TestHibernationDoesNotWaitForNodes(t *testing.T) {
	for _, hibernates := range []bool{false, true} {
		var waits []string
		for _, task := range Tasks(Inputs{Hibernates: hibernates}) {
			if task.ID == "tunnel" || task.ID == "nodes-updated" {
				waits = append(waits, task.ID)
			}
		}
		if (len(waits) == 0) != hibernates {
			t.Errorf("hibernates: %t, and the tasks are %v", hibernates, waits)
		}
	}
}

// The last node begins to apply its configuration when the delay is over.
func TestNodesAreAwaitedLongerThanTheirDelay(t *testing.T) {
	tasks := Tasks(Inputs{NodeAgentDelay: 30 * time.Minute})
	i := slices.IndexFunc(tasks, func(task flow.Task) bool { return task.ID == "nodes-updated" })
	if i < 0 || tasks[i].Timeout != 40*time.Minute {
		t.Errorf("there is no task with 10 minutes more than the delay: %v", tasks)
	}
}

// The node-local-dns gets the server blocks that users have written for the cluster's DNS server.
func TestCustomDNS(t *testing.T) {
	clusters := stagetest.New(t)
	custom := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns-custom"},
		Data:       map[string]string{"a.server": "example.com:8053 {\n  forward . 192.0.2.1\n}\n"},
	}
	if err := clusters.Shoot.Create(t.Context(), custom); err != nil {
		t.Fatal(err)
	}
	in := Inputs{Run: clusters.Run(), NodeLocalDNS: func() (nodelocaldns.Values, error) {
		return nodelocaldns.Values{Address: netip.MustParseAddr("169.254.20.10")}, nil
	}}
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "node-local-dns-custom"); err != nil {
		t.Fatal(err)
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "shoot-core-node-local-dns-custom"}, mr); err != nil {
		t.Fatal(err)
	}
}

// Webhooks of extensions select by labels that others have set.
func TestOperatingSystemConfigsKeepLabelsOfOthers(t *testing.T) {
	clusters := stagetest.New(t)
	pool := operatingsystemconfig.Pool{Hash: "0123456789abcdef", Worker: corev1beta1.Worker{
		Name: "small", Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "linux"}},
	}}
	in := Inputs{Run: clusters.Run(), OperatingSystemConfigs: func() (operatingsystemconfig.Values, error) {
		return operatingsystemconfig.Values{
			Namespace: stagetest.Namespace, KubernetesVersion: "1.36.3", ClusterDNS: []net.IP{net.ParseIP("100.64.0.10")}, Pools: []operatingsystemconfig.Pool{pool},
		}, nil
	}}
	name := operatingsystemconfig.Name(pool.Worker.Name, pool.Hash, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile)
	existing := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: stagetest.Namespace, Name: name, Labels: map[string]string{"example.com/labelled": "true", constants.WorkerPool: "former"},
	}}
	if err := clusters.Seed.Create(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "operating-system-configs"); err != nil {
		t.Fatal(err)
	}
	if err := clusters.Seed.Get(t.Context(), client.ObjectKeyFromObject(existing), existing); err != nil {
		t.Fatal(err)
	}
	if existing.Labels["example.com/labelled"] != "true" || existing.Labels[constants.WorkerPool] != "small" {
		t.Errorf("labels are %v", existing.Labels)
	}
}

// What the extension has reported before the Worker is written is kept for others, and the Worker is written although it is not ready.
func TestWorkerIsWrittenBeforeItIsAwaited(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}
	worker.Status.MachineDeploymentsLastUpdateTime = &before
	seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(worker).
		WithIndex(worker, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
	in := Inputs{
		Run:    &stage.Run{SeedAPI: seed, Namespace: stagetest.Namespace, Name: stagetest.Name, Clock: clock.RealClock{}},
		Result: &Result{},
		Worker: func([]Pool) (func(*extensionsv1alpha1.Worker), error) {
			return func(w *extensionsv1alpha1.Worker) { w.Spec.Region = "new" }, nil
		},
	}
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "worker-deployed"); err != nil {
		t.Fatal(err)
	}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(worker), worker); err != nil || worker.Spec.Region != "new" || worker.Annotations["gardener.cloud/operation"] != "reconcile" {
		t.Errorf("the Worker has the region %q and the annotations %v, %v", worker.Spec.Region, worker.Annotations, err)
	}
	if former := in.Result.Worker; former == nil || former.Spec.Region != "" || !former.Status.MachineDeploymentsLastUpdateTime.Equal(&before) {
		t.Errorf("the Worker of before is %+v", former)
	}
	if err := stagetest.RunTaskUntilIdle(t, Tasks(in), "worker"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Worker that is not ready is not waited for: %v", err)
	}
	in.Run.SkipReadiness = true
	if err := stagetest.RunTask(t.Context(), t, Tasks(in), "worker"); err != nil {
		t.Errorf("it is waited for although readiness is skipped: %v", err)
	}
}

// If the next operation started the machine-controller-manager before the machines are known, it would create others.
func TestRestoredMachinesAreAwaitedAlthoughReadinessIsSkipped(t *testing.T) {
	last := func(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: typ, State: state}
	}
	for name, tc := range map[string]struct {
		last  *corev1beta1.LastOperation
		state bool
		// manager are the desired pods of the machine-controller-manager. Protects is whether the dependency-watchdog has stopped it.
		manager  int32
		protects bool
		known    bool
		replicas int32
	}{
		"requested":                       {state: true},
		"released on this seed before":    {last: last("Migrate", "Succeeded"), state: true},
		"begun":                           {last: last("Restore", "Processing"), state: true},
		"has failed":                      {last: last("Restore", "Error"), state: true},
		"restored, machines do not start": {last: last("Restore", "Error"), known: true, replicas: 2},
		// Extensions with another library keep the state.
		"machines are there":                     {last: last("Restore", "Processing"), state: true, manager: 1, known: true, replicas: 2},
		"machines are there, nodes do not start": {last: last("Restore", "Error"), state: true, manager: 1, known: true, replicas: 2},
		"machines are there, the manager is stopped as the nodes are not reached": {last: last("Restore", "Error"), state: true, protects: true, known: true, replicas: 2},
		"the manager is from before the shoot left this seed":                     {last: last("Migrate", "Succeeded"), state: true, manager: 1},
	} {
		t.Run(name, func(t *testing.T) {
			worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{
				Namespace: stagetest.Namespace, Name: stagetest.Name, Annotations: map[string]string{"gardener.cloud/operation": "restore"},
			}}
			if worker.Status.LastOperation = tc.last; tc.state {
				worker.Status.State = &runtime.RawExtension{Raw: []byte(`{}`)}
			}
			manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "machine-controller-manager"}}
			if manager.Spec.Replicas = &tc.manager; tc.protects {
				manager.Annotations = map[string]string{constants.DependencyWatchdogMeltdownProtectionActive: ""}
			}
			seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(worker, manager).WithStatusSubresource(worker).
				WithIndex(manager, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
				WithIndex(worker, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
				WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
			in := Inputs{Restores: true, Replicas: 2, Run: &stage.Run{
				SeedAPI: seed, Namespace: stagetest.Namespace, Name: stagetest.Name, Clock: clock.RealClock{}, SkipReadiness: true,
			}}
			if err := stagetest.RunTaskUntilIdle(t, Tasks(in), "worker"); (err == nil) != tc.known {
				t.Errorf("the wait for the Worker ends with %v", err)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(worker), worker); err != nil || (worker.Status.State == nil) != tc.known {
				t.Errorf("the state is %v afterwards (%v)", worker.Status.State, err)
			}
			if replicas, err := in.managerReplicas(t.Context()); replicas != tc.replicas || err != nil {
				t.Errorf("%d replicas of the machine-controller-manager (%v), want %d", replicas, err, tc.replicas)
			}
		})
	}
}

// The Worker does not change when its extension has restored the machines and starts the machine-controller-manager.
func TestTheStartOfTheMachineControllerManagerEndsTheWaitForARestoredWorker(t *testing.T) {
	worker := &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: stagetest.Name}}
	worker.Status.State = &runtime.RawExtension{Raw: []byte(`{}`)}
	worker.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeRestore, State: corev1beta1.LastOperationStateProcessing}
	worker.Annotations = map[string]string{constants.GardenerOperation: constants.GardenerOperationRestore}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "machine-controller-manager"}}
	manager.Spec.Replicas = new(int32(0))
	var start sync.Once
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(worker, manager).WithStatusSubresource(worker).
		WithIndex(manager, "metadata.name", byName).
		WithIndex(worker, "metadata.name", byName).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := stagetest.WatchWithoutList(ctx, c, list, opts...)
			if _, ok := list.(*appsv1.DeploymentList); ok && err == nil {
				start.Do(func() {
					started := manager.DeepCopy()
					started.Spec.Replicas = new(int32(1))
					err = c.Patch(ctx, started, client.MergeFrom(manager))
				})
			}
			return w, err
		},
	}).Build()
	in := Inputs{Restores: true, Run: &stage.Run{
		SeedAPI: seed, Namespace: stagetest.Namespace, Name: stagetest.Name, Clock: clock.RealClock{}, SkipReadiness: true,
	}}
	if err := stagetest.RunTaskUntilIdle(t, Tasks(in), "worker"); err != nil {
		t.Error(err)
	}
}

// Otherwise a node agent could report that a node is updated which was drained before the agent knew of the change.
func TestWorkerComesAfterTheConfigurationOfNodesThatAreUpdatedInPlace(t *testing.T) {
	for _, updates := range []bool{false, true} {
		for _, task := range Tasks(Inputs{Run: stagetest.New(t).Run(), UpdatesInPlace: updates}) {
			if task.ID == "worker-deployed" && slices.Contains(task.After, "node-agents") != updates {
				t.Errorf("with updates %t, the Worker is deployed after %v", updates, task.After)
			}
		}
	}
}
