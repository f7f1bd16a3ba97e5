package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fakeclient "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler/plan"
	"gardener.cloud/gardener/internal/kube/removaltaint"
)

// oneEach is a simulator in which a node has room for one pod.
type oneEach struct{ used map[string]bool }

func (oneEach) Start([]plan.Occupied) plan.Simulation { return oneEach{map[string]bool{}} }
func (o oneEach) Fork() plan.Simulation               { return o }
func (oneEach) Add(plan.Occupied)                     {}
func (oneEach) Remove(string)                         {}
func (o oneEach) Place(_ context.Context, _ *corev1.Pod, nodes []string) (string, error) {
	for _, name := range nodes {
		if !o.used[name] {
			o.used[name] = true
			return name, nil
		}
	}
	return "", &plan.NotFit{Reasons: []string{"full"}}
}

// newScaler returns one that has seen what there is.
func newScaler(t *testing.T, seed client.Client, shoot *fakeclient.Clientset, clock *clocktesting.FakeClock, flags ...string) *Scaler {
	t.Helper()
	factory := newFactory(shoot)
	o, err := Parse(flags, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Values{
		Options: o, Namespace: "shoot", Shoot: shoot, Factory: factory, Simulator: oneEach{}, ControlCache: seed, ControlAPI: seed,
		Events: record.NewFakeRecorder(10), Clock: clock,
	})
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return s
}

// The infrastructure has no machine of a kind: its group rests, what was requested is taken back, and another group grows.
func TestResourceExhausted(t *testing.T) {
	scheme := machineScheme(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	manager := machineManager()
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a-1", Labels: map[string]string{"name": "a"}, CreationTimestamp: metav1.NewTime(clock.Now())},
		Status: machinev1alpha1.MachineStatus{LastOperation: machinev1alpha1.LastOperation{
			Type: machinev1alpha1.MachineOperationCreate, State: machinev1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted", Description: "sold out",
		}},
	}
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(append(emptyGroup("a", 1), emptyGroup("b", 0)...), manager, machine)...).Build()
	shoot := fakeclient.NewClientset(pendingPod(clock.Now()))
	s := newScaler(t, seed, shoot, clock, "--nodes=0:3:shoot.a", "--nodes=0:3:shoot.b")
	for range 2 { // the first scan takes the machine back
		if err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int32{}
	deployments := &machinev1alpha1.MachineDeploymentList{}
	if err := seed.List(t.Context(), deployments); err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		got[d.Name] = d.Spec.Replicas
		if want := "a-1~2026-01-02T03:04:05Z"; d.Name == "a" && d.Annotations[machinev1alpha1.TriggerDeletionByMCM] != want {
			t.Errorf("machines to delete are %q, want %q", d.Annotations[machinev1alpha1.TriggerDeletionByMCM], want)
		}
	}
	if diff := cmp.Diff(map[string]int32{"a": 0, "b": 1}, got); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	if until, reason := s.backoff.Resting("a", clock.Now()); until.Sub(clock.Now()) != 5*time.Minute || reason != "sold out" {
		t.Errorf("the group rests until %s because %q", until, reason)
	}
}

// One of two groups cannot grow: the pod of the other has its event, as the next scan finds that it only waits for its node.
func TestEventWhenAnotherGroupCannotGrow(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	first, second := pendingPod(clock.Now()), pendingPod(clock.Now())
	second.Name, second.UID = "q", "q"
	refused := errors.New("refused")
	objects := append(append(emptyGroup("a", 0), emptyGroup("b", 0)...), machineManager())
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetName() == "a" {
				return refused
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}).Build()
	s := newScaler(t, seed, fakeclient.NewClientset(first, second), clock, "--nodes=0:1:shoot.a", "--nodes=0:1:shoot.b")
	events := record.NewFakeRecorder(10)
	s.events = events
	if err := s.Scan(t.Context()); !errors.Is(err, refused) {
		t.Fatalf("scan: %v, want %v", err, refused)
	}
	close(events.Events)
	var got []string
	for event := range events.Events {
		got = append(got, event)
	}
	if diff := cmp.Diff([]string{"Normal TriggeredScaleUp pod triggered scale-up: [{b 0->1 (max: 1)}]"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A group grows, and the response gets lost: the pod has its event, as the next scan finds that it only waits for its node. If the change was not made, the
// next scan makes it.
func TestResponseThatIsLost(t *testing.T) {
	lost := errors.New("connection lost")
	for name, tc := range map[string]struct {
		changed bool
		want    []string
	}{
		"the change was made": {true, []string{"Normal TriggeredScaleUp pod triggered scale-up: [{a 0->1 (max: 1)}]"}},
		"it was not":          {false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 0), machineManager())...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if tc.changed {
						copied := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is one
						if err := c.Patch(ctx, copied, patch, options...); err != nil {
							return err
						}
					}
					return lost
				},
			}).Build()
			s := newScaler(t, seed, fakeclient.NewClientset(pendingPod(clock.Now())), clock, "--nodes=0:1:shoot.a")
			events := record.NewFakeRecorder(10)
			s.events = events
			if err := s.Scan(t.Context()); errors.Is(err, lost) == tc.changed {
				t.Errorf("scan: %v", err)
			}
			close(events.Events)
			var got []string
			for event := range events.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A user gives a machine the priority of those that the autoscaler chooses: the machine-controller-manager does not delete it, so its group has as many
// machines as it requests, and no replica is taken back. Only one that is marked, too, is deleted.
func TestPriorityOfAUser(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		marked, scaled string
		want           int32
	}{
		"the priority only":                   {want: 1},
		"the deployment was scaled":           {scaled: "2026-01-02T03:00:00Z", want: 1},
		"marked, and not scaled":              {marked: "2026-01-02T03:00:00Z", want: 1},
		"marked, and the scaling is older":    {marked: "2026-01-02T03:00:00Z", scaled: "2026-01-02T02:00:00Z", want: 1},
		"marked by the autoscaler, and going": {marked: "2026-01-02T03:00:00Z", scaled: "2026-01-02T03:00:00Z", want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			objects := append(emptyGroup("a", 1), machineManager(), &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shoot", Name: "a-1", Labels: map[string]string{"name": "a", "node": "n"},
				Annotations: map[string]string{machinev1alpha1.MachinePriority: "1", machinev1alpha1.MarkedForDeletionTime: tc.marked},
			}})
			objects[0].SetAnnotations(map[string]string{machinev1alpha1.LastDeploymentReplicaChangeByScalerTime: tc.scaled})
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects...).Build()
			s := newScaler(t, seed, fakeclient.NewClientset(healthyNode("n")), clock, "--nodes=0:3:shoot.a", "--scale-down-enabled=false")
			for range 2 {
				if err := s.Scan(t.Context()); err != nil {
					t.Fatal(err)
				}
				clock.Step(20 * time.Minute) // longer than a machine may take to join
			}
			d := &machinev1alpha1.MachineDeployment{}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(objects[0]), d); err != nil {
				t.Fatal(err)
			}
			if d.Spec.Replicas != tc.want {
				t.Errorf("%d replicas, want %d", d.Spec.Replicas, tc.want)
			}
		})
	}
}

// The machine-controller-manager replaces machines that do not join before the autoscaler gives them up, and the group grows for further pods: it rests
// nevertheless, and another grows.
func TestMachinesThatAreReplacedBeforeTheyAreLate(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	larger := emptyGroup("larger", 0)
	larger[1].(*machinev1alpha1.MachineClass).NodeTemplate.Capacity[corev1.ResourceCPU] = resource.MustParse("8")
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(append(emptyGroup("group", 0), larger...), machineManager())...).Build()
	s := newScaler(t, seed, fakeclient.NewClientset(), clock, "--nodes=0:9:shoot.group", "--nodes=0:9:shoot.larger", "--max-node-provision-time=20m", "--expander=least-waste")
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	s.pods = corelisters.NewPodLister(pods)
	addPod := func(name string) {
		t.Helper()
		pod := pendingPod(clock.Now())
		pod.Name, pod.UID = name, types.UID(name)
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
		if err := pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	scan := func() map[string]int32 {
		t.Helper()
		if err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		deployments, got := &machinev1alpha1.MachineDeploymentList{}, map[string]int32{}
		if err := seed.List(t.Context(), deployments); err != nil {
			t.Fatal(err)
		}
		for _, d := range deployments.Items {
			got[d.Name] = d.Spec.Replicas
		}
		return got
	}
	machine := &machinev1alpha1.Machine{}
	for i := range 3 { // with a creation timeout of 8 minutes
		addPod(fmt.Sprint("p", i))
		if i > 0 {
			if err := seed.Delete(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
		}
		got := scan()
		machine = &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot", Name: fmt.Sprint("group-", i), Labels: map[string]string{"name": "group"}, CreationTimestamp: metav1.NewTime(clock.Now()),
		}}
		if err := seed.Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
		if got["group"] != int32(i+1) || got["larger"] != 0 {
			t.Fatalf("replicas %v before it is late", got)
		}
		clock.Step(8 * time.Minute)
	}
	scan() // it takes the machine back
	if got := scan(); got["larger"] == 0 {
		t.Errorf("replicas %v: the group does not rest", got)
	}
}

// idleNode is a node of a machine of its name in a group. Another one has room for what runs on it.
func idleNode(name, group string) (*corev1.Node, *machinev1alpha1.Machine) {
	node := healthyNode(name)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	return node, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shoot", Name: name, UID: types.UID(name), Labels: map[string]string{"name": group, machinev1alpha1.NodeLabelKey: name},
	}}
}

// isTainted returns whether a node is kept from getting new pods.
func isTainted(t *testing.T, shoot *fakeclient.Clientset, name string) bool {
	t.Helper()
	node, err := shoot.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == removaltaint.Key })
}

// An idle node is not removed after all: its group cannot be changed, or has its minimum by now. The node gets pods again.
func TestRemovalThatFails(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		replicas int32 // at the API server
		err      error
	}{
		"the change is refused":                {replicas: 1, err: refused},
		"another process reduced it meanwhile": {replicas: 0},
	} {
		t.Run(name, func(t *testing.T) {
			node, machine := idleNode("n", "a")
			objects := func(replicas int32) []client.Object {
				return append(emptyGroup("a", replicas), machineManager(), machine.DeepCopy())
			}
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects(1)...).Build()
			shoot := fakeclient.NewClientset(node)
			s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s")
			s.controlAPI = fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects(tc.replicas)...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return tc.err
				},
			}).Build()
			if err := s.Scan(t.Context()); !errors.Is(err, tc.err) {
				t.Fatalf("scan: %v, want %v", err, tc.err)
			}
			if isTainted(t, shoot, "n") {
				t.Error("the node is still tainted")
			}
		})
	}
}

// The taint of a node that is not removed after all cannot be removed at once: the next scan tries again.
func TestTaintIsRemovedLater(t *testing.T) {
	refused := errors.New("refused")
	node, machine := idleNode("n", "a")
	shoot := fakeclient.NewClientset(node)
	updates := 0
	shoot.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		updates++
		return updates == 2, nil, refused
	})
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 1), machineManager(), machine)...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refused
		},
	}).Build()
	s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s")
	for i, want := range []bool{true, false} {
		scanTainted(t, s, shoot, i, want, refused)
	}
}

// scanTainted scans with the current Node "n" in the cache. The scan fails with an error if the node is tainted after it, and else not.
func scanTainted(t *testing.T, s *Scaler, shoot *fakeclient.Clientset, scan int, want bool, failure error) {
	t.Helper()
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	s.nodes = corelisters.NewNodeLister(nodes)
	current, err := shoot.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err := errors.Join(err, nodes.Add(current)); err != nil {
		t.Fatal(err)
	}
	if err := s.Scan(t.Context()); errors.Is(err, failure) != want {
		t.Errorf("scan %d: %v", scan, err)
	}
	if got := isTainted(t, shoot, "n"); got != want {
		t.Errorf("after scan %d, the node is tainted: %t, want %t", scan, got, want)
	}
}

// A node is tainted, and the response gets lost: it is not removed, so the next scan lets it get pods again.
func TestTaintWhoseResponseIsLost(t *testing.T) {
	lost := errors.New("connection lost")
	node, machine := idleNode("n", "a")
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 1), machineManager(), machine)...).Build()
	shoot := fakeclient.NewClientset(node)
	updates := 0
	shoot.PrependReactor("update", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if updates++; updates > 1 {
			return false, nil, nil
		}
		update := action.(clienttesting.UpdateAction) //nolint:forcetypeassert // it is one
		return true, nil, errors.Join(lost, shoot.Tracker().Update(update.GetResource(), update.GetObject(), update.GetNamespace()))
	})
	s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s")
	for i, want := range []bool{true, false} {
		scanTainted(t, s, shoot, i, want, lost)
		s.options.rules.MaxTotal = 0 // nothing is removed any more
	}
}

// The process before has left a taint, and the API server of the shoot refuses to remove it: groups are scaled nevertheless, and the next scan tries again. The
// taints of this process stay.
func TestNodeThatCannotBeChanged(t *testing.T) {
	left, machine := idleNode("left", "a")
	drained, itsMachine := idleNode("drained", "a")
	for _, node := range []*corev1.Node{left, drained} {
		node.Spec.Taints = []corev1.Taint{{Key: removaltaint.Key, Effect: corev1.TaintEffectNoSchedule}}
	}
	pod, second := pendingPod(time.Now()), pendingPod(time.Now())
	second.Name, second.UID = "second", "second"
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 2), machineManager(), machine, itsMachine)...).Build()
	shoot := fakeclient.NewClientset(left, drained, pod, second)
	refused := errors.New("refused")
	shoot.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return refused != nil, nil, refused })
	s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-enabled=false")
	s.draining["drained"] = &drain{}
	if err := s.Scan(t.Context()); !errors.Is(err, refused) {
		t.Fatalf("scan: %v, want %v", err, refused)
	}
	d := &machinev1alpha1.MachineDeployment{}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: "shoot", Name: "a"}, d); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Replicas != 3 {
		t.Errorf("%d replicas, want 3", d.Spec.Replicas)
	}
	refused = nil
	if err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if isTainted(t, shoot, "left") || !isTainted(t, shoot, "drained") {
		t.Error("not only the node that is drained is tainted")
	}
}

// The health check fails when all scans have failed for a quarter of an hour, but not if they are skipped, or if it is only a single node that cannot be changed.
func TestHealthOfScansThatFail(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		machines, node error
		away           bool // whether there is no machine-controller-manager
		wantErr        error
		wantHealthy    bool
	}{
		"machines cannot be listed":     {machines: refused, wantErr: refused},
		"no machine-controller-manager": {away: true, machines: refused, wantHealthy: true},
		"a node cannot be changed":      {node: refused, wantErr: refused, wantHealthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			node, machine := idleNode("n", "a")
			node.Spec.Taints = []corev1.Taint{{Key: removaltaint.Key, Effect: corev1.TaintEffectNoSchedule}}
			objects := append(emptyGroup("a", 1), machine)
			if !tc.away {
				objects = append(objects, machineManager())
			}
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
					return errors.Join(tc.machines, c.List(ctx, list, o...))
				},
			}).Build()
			shoot := fakeclient.NewClientset(node)
			shoot.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return tc.node != nil, nil, tc.node })
			s := newScaler(t, seed, shoot, clock, "--nodes=1:3:shoot.a")
			for range 4 {
				if err := s.Alive(); err != nil {
					t.Errorf("it is not healthy after %s: %v", clock.Now(), err)
				}
				clock.Step(5 * time.Minute)
				if err := s.Scan(t.Context()); !errors.Is(err, tc.wantErr) {
					t.Fatalf("scan: %v, want %v", err, tc.wantErr)
				}
			}
			if err := s.Alive(); (err == nil) != tc.wantHealthy {
				t.Errorf("healthy: %v, want %t", err, tc.wantHealthy)
			}
		})
	}
}

// A user deletes a machine, which takes long: an idle node is removed meanwhile. What the autoscaler has chosen counts until it is gone, also if the
// machine-controller-manager does not list it any more.
func TestHowManyAtATime(t *testing.T) {
	const at = "2026-01-02T03:00:00Z"
	for name, tc := range map[string]struct {
		change func(*machinev1alpha1.Machine, *machinev1alpha1.MachineDeployment)
		want   int32
	}{
		"deleted by a user": {change: func(*machinev1alpha1.Machine, *machinev1alpha1.MachineDeployment) {}, want: 1},
		"listed": {change: func(_ *machinev1alpha1.Machine, d *machinev1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{machinev1alpha1.TriggerDeletionByMCM: "leaves~" + at}
		}, want: 2},
		"marked": {change: func(m *machinev1alpha1.Machine, d *machinev1alpha1.MachineDeployment) {
			m.Annotations = map[string]string{machinev1alpha1.MachinePriority: "1", machinev1alpha1.MarkedForDeletionTime: at}
			d.Annotations = map[string]string{machinev1alpha1.LastDeploymentReplicaChangeByScalerTime: at}
		}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			node, machine := idleNode("n", "a")
			leaves, itsMachine := idleNode("leaves", "a")
			group := emptyGroup("a", 2)
			d := group[0].(*machinev1alpha1.MachineDeployment) //nolint:forcetypeassert // it is the first one
			itsMachine.DeletionTimestamp, itsMachine.Finalizers = new(metav1.NewTime(time.Now())), []string{machinev1alpha1.MCMFinalizerName}
			tc.change(itsMachine, d)
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(group, machineManager(), machine, itsMachine)...).Build()
			s := newScaler(t, seed, fakeclient.NewClientset(node, leaves), clocktesting.NewFakeClock(time.Now()),
				"--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s", "--max-scale-down-parallelism=1")
			if err := s.Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if d.Spec.Replicas != tc.want {
				t.Errorf("%d replicas, want %d", d.Spec.Replicas, tc.want)
			}
		})
	}
}

// The process was killed while it drained a node, whose pool is not elastic any more: the next one, which is there for other pools, lets it get pods again. So does
// a node without a machine.
func TestTaintOfAPoolThatIsNotElastic(t *testing.T) {
	node, machine := idleNode("n", "fixed")
	unmanaged := healthyNode("unmanaged")
	for _, n := range []*corev1.Node{node, unmanaged} {
		n.Spec.Taints = []corev1.Taint{{Key: removaltaint.Key, Effect: corev1.TaintEffectNoSchedule}}
	}
	objects := append(append(emptyGroup("a", 0), emptyGroup("fixed", 1)...), machineManager(), machine)
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects...).Build()
	shoot := fakeclient.NewClientset(node, unmanaged)
	s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a")
	if err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n", "unmanaged"} {
		if isTainted(t, shoot, name) {
			t.Errorf("node %q is still tainted", name)
		}
	}
}

// A pod waits for the end of others on a node, which goes away: it needs another node.
func TestNominatedNodeThatIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		nominated string
		want      int // pods that need a node
	}{
		"the node exists":  {"n", 0},
		"the node is gone": {"gone", 1},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			pod := pendingPod(now)
			pod.Status.NominatedNodeName = tc.nominated
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 0), machineManager())...).Build()
			s := newScaler(t, seed, fakeclient.NewClientset(healthyNode("n"), pod), clocktesting.NewFakeClock(now), "--nodes=0:3:shoot.a")
			st, err := s.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := len(st.pending); got != tc.want {
				t.Errorf("%d pods need a node, want %d", got, tc.want)
			}
		})
	}
}

// The autoscaler is switched off while it drains a node: the node gets pods again.
func TestStoppedDuringADrain(t *testing.T) {
	node, machine := idleNode("n", "a")
	other, itsMachine := idleNode("other", "a")
	other.Annotations = map[string]string{plan.ScaleDownDisabled: "true"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}},
	}, Spec: corev1.PodSpec{NodeName: "n"}}
	seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(emptyGroup("a", 2), machineManager(), machine, itsMachine)...).Build()
	shoot := fakeclient.NewClientset(node, other, pod)
	s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s")
	if err := s.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !isTainted(t, shoot, "n") {
		t.Fatal("the node is not drained")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ctx)
	if isTainted(t, shoot, "n") {
		t.Error("the node is still tainted")
	}
}

// While a node is drained, another one stops being ready, so that the cluster is not healthy, or its machines begin to be replaced: the node gets pods again,
// and is not needed only from when that is over.
func TestDrainsThatStop(t *testing.T) {
	for name, change := range map[string]func(other *corev1.Node, d *machinev1alpha1.MachineDeployment){
		"the cluster is not healthy": func(other *corev1.Node, _ *machinev1alpha1.MachineDeployment) { other.Status.Conditions = nil },
		"machines are replaced": func(_ *corev1.Node, d *machinev1alpha1.MachineDeployment) {
			d.Status.Replicas, d.Status.UpdatedReplicas = 2, 1
			d.Status.Conditions = []machinev1alpha1.MachineDeploymentCondition{
				{Type: machinev1alpha1.MachineDeploymentProgressing, Status: machinev1alpha1.ConditionTrue, Reason: "MachineSetUpdated"},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			node, machine := idleNode("n", "a")
			other, itsMachine := idleNode("other", "a")
			other.Annotations = map[string]string{plan.ScaleDownDisabled: "true"}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}},
			}, Spec: corev1.PodSpec{NodeName: "n"}}
			group := emptyGroup("a", 2)
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(group, machineManager(), machine, itsMachine)...).Build()
			shoot := fakeclient.NewClientset(node, other, pod)
			s := newScaler(t, seed, shoot, clocktesting.NewFakeClock(time.Now()), "--nodes=0:3:shoot.a", "--scale-down-unneeded-time=0s",
				"--ok-total-unready-count=0", "--max-total-unready-percentage=10")
			if err := s.Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !isTainted(t, shoot, "n") {
				t.Fatal("the node is not drained")
			}
			deployment := &machinev1alpha1.MachineDeployment{}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(group[0]), deployment); err != nil {
				t.Fatal(err)
			}
			change(other, deployment)
			nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			s.nodes = corelisters.NewNodeLister(nodes)
			current, err := shoot.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
			if err := errors.Join(err, seed.Update(t.Context(), deployment), nodes.Add(current), nodes.Add(other)); err != nil {
				t.Fatal(err)
			}
			if err := s.Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if isTainted(t, shoot, "n") || len(s.draining) > 0 {
				t.Error("the node is still tainted")
			}
			if len(s.since) > 0 {
				t.Errorf("nodes are not needed since %v", s.since)
			}
		})
	}
}

// emptyGroup is a group without nodes.
func emptyGroup(name string, replicas int32) []client.Object {
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}}
	d.Spec.Replicas, d.Spec.Selector = replicas, &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	d.Spec.Template.Spec.Class.Name = name
	return []client.Object{d, &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}, NodeTemplate: &machinev1alpha1.NodeTemplate{
			InstanceType: name, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		},
	}}
}

func pendingPod(created time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p", CreationTimestamp: metav1.NewTime(created)},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
}

// machineScheme has the kinds of a control cluster.
func machineScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// healthyNode is a ready node without pods.
func healthyNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// machineManager is the Deployment that a scan needs.
func machineManager() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: machineControllerManager}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1},
	}
}

// While machines are replaced, the infrastructure has no capacity for a new one, or it does not join: no replica is taken back, as the
// machine-controller-manager would drain a node of the old template then. In a new deployment, there is none.
func TestFailedMachinesOfAnUpdate(t *testing.T) {
	exhausted := machinev1alpha1.LastOperation{
		Type: machinev1alpha1.MachineOperationCreate, State: machinev1alpha1.MachineStateFailed, ErrorCode: "ResourceExhausted", Description: "sold out",
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	machine := func(name string, operation machinev1alpha1.LastOperation) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, Labels: map[string]string{"name": "a", "node": name}, CreationTimestamp: metav1.NewTime(start)},
			Status:     machinev1alpha1.MachineStatus{LastOperation: operation},
		}
	}
	for name, tc := range map[string]struct {
		created        bool // whether there is a machine besides two with nodes
		operation      machinev1alpha1.LastOperation
		total, updated int32 // machines in the status
		want           int32
	}{
		"no capacity":                      {created: true, operation: exhausted, total: 3, updated: 1, want: 3},
		"late":                             {created: true, total: 3, updated: 1, want: 3},
		"not created":                      {total: 2, want: 3},
		"no capacity for a new deployment": {created: true, operation: exhausted, total: 3, updated: 3, want: 2},
		"late in a new deployment":         {created: true, total: 3, updated: 3, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a"}}
			d.Spec.Replicas, d.Spec.Selector = 3, &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}
			d.Status = machinev1alpha1.MachineDeploymentStatus{Replicas: tc.total, UpdatedReplicas: tc.updated, Conditions: []machinev1alpha1.MachineDeploymentCondition{
				{Type: machinev1alpha1.MachineDeploymentProgressing, Status: machinev1alpha1.ConditionTrue, Reason: "MachineSetUpdated"},
			}}
			objects := []client.Object{machineManager(), d, machine("n1", machinev1alpha1.LastOperation{}), machine("n2", machinev1alpha1.LastOperation{})}
			if tc.created {
				objects = append(objects, machine("new", tc.operation))
			}
			seed := fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(objects...).Build()
			s := newScaler(t, seed, fakeclient.NewClientset(healthyNode("n1"), healthyNode("n2")), clock, "--nodes=0:3:shoot.a")
			rested := false
			for range 2 {
				if err := s.Scan(t.Context()); err != nil {
					t.Fatal(err)
				}
				until, _ := s.backoff.Resting("a", clock.Now())
				rested = rested || !until.IsZero()
				clock.SetTime(clock.Now().Add(20 * time.Minute)) // longer than a machine may take to join
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if listed := d.Annotations[machinev1alpha1.TriggerDeletionByMCM]; d.Spec.Replicas != tc.want || (listed != "") != (tc.want < 3) || !rested {
				t.Errorf("%d replicas, want %d; machines to delete are %q; rested: %t", d.Spec.Replicas, tc.want, listed, rested)
			}
		})
	}
}

// A pool is removed and added again: its MachineDeployment begins with generation 1, and is scaled as before.
func TestDeploymentThatIsCreatedAgain(t *testing.T) {
	deployment := func(uid types.UID, generation int64) *state {
		g := &groupState{deployment: &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid, Generation: generation}}}
		g.Name = "a"
		return &state{groups: []*groupState{g}}
	}
	s := &Scaler{wrote: map[types.UID]int64{"first": 7}}
	for name, tc := range map[string]struct {
		st   *state
		want bool
	}{
		"the cache is behind": {st: deployment("first", 6)},
		"the cache has it":    {st: deployment("first", 7), want: true},
		"created again":       {st: deployment("second", 1), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := s.current(t.Context(), tc.st); got != tc.want || err != nil {
				t.Errorf("current() = %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}

// The store of the seed is restored to an earlier time: a deployment has fewer generations than the autoscaler has written, and is scaled nevertheless. A cache
// that is late is waited for.
func TestStoreThatIsRestored(t *testing.T) {
	for name, tc := range map[string]struct {
		live        int64 // the generation at the API server
		wait        time.Duration
		want        int32 // replicas
		wantFailure bool
	}{
		"restored":                   {live: 3, wait: time.Minute, want: 1},
		"not for long":               {live: 3, wait: 50 * time.Second},
		"the cache is late":          {live: 7, wait: 50 * time.Second},
		"the cache is late for long": {live: 7, wait: time.Minute, wantFailure: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			group := emptyGroup("a", 0)
			group[0].SetUID("a")
			with := func(generation int64) client.WithWatch {
				group[0].SetGeneration(generation)
				return fake.NewClientBuilder().WithScheme(machineScheme(t)).WithObjects(append(group, machineManager())...).Build()
			}
			s := newScaler(t, with(3), fakeclient.NewClientset(pendingPod(clock.Now())), clock, "--nodes=0:3:shoot.a")
			s.controlAPI, s.wrote["a"] = with(tc.live), 7
			if err := s.Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.Step(tc.wait)
			if err := s.Scan(t.Context()); (err != nil) != tc.wantFailure {
				t.Errorf("scan: %v", err)
			}
			d := &machinev1alpha1.MachineDeployment{}
			if err := s.controlAPI.Get(t.Context(), client.ObjectKeyFromObject(group[0]), d); err != nil {
				t.Fatal(err)
			}
			if d.Spec.Replicas != tc.want {
				t.Errorf("%d replicas, want %d", d.Spec.Replicas, tc.want)
			}
		})
	}
}

// A machine that had joined loses its node: the machine-controller-manager replaces it. Only if it does not, the machine is removed.
func TestMachineThatLosesItsNode(t *testing.T) {
	scheme := machineScheme(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	labels := map[string]string{"name": "a"}
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a"}}
	d.Spec.Replicas, d.Spec.Selector = 1, &metav1.LabelSelector{MatchLabels: labels}
	machine := &machinev1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shoot", Name: "a-1", UID: "a-1", Labels: labels, CreationTimestamp: metav1.NewTime(clock.Now().Add(-48 * time.Hour)),
		},
		Status: machinev1alpha1.MachineStatus{CurrentStatus: machinev1alpha1.CurrentStatus{Phase: machinev1alpha1.MachineUnknown}},
	}
	manager := machineManager()
	seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(d, machine, manager).Build()
	shoot := fakeclient.NewClientset()
	s := newScaler(t, seed, shoot, clock, "--nodes=0:3:shoot.a")
	for _, tc := range []struct {
		later time.Duration
		want  int32
	}{{0, 1}, {14 * time.Minute, 1}, {time.Minute, 0}} {
		clock.SetTime(clock.Now().Add(tc.later))
		if err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			t.Fatal(err)
		}
		if d.Spec.Replicas != tc.want {
			t.Errorf("at %s: %d replicas, want %d", clock.Now(), d.Spec.Replicas, tc.want)
		}
	}
}

// A failed machine that is kept for inspection is one of its group: pods that it cannot have need another machine, and without such pods, its group
// stays as it is. One that is not kept is being replaced.
func TestPreservedMachine(t *testing.T) {
	scheme := machineScheme(t)
	for name, tc := range map[string]struct {
		left        time.Duration
		node, pod   bool
		want, later int32
	}{
		"with a pod":                {left: 96 * time.Hour, node: true, pod: true, want: 2, later: 2},
		"without a pod":             {left: 96 * time.Hour, node: true, want: 1, later: 1},
		"it never joined":           {left: 96 * time.Hour, want: 1, later: 1},
		"it never joined, with pod": {left: 96 * time.Hour, pod: true, want: 2, later: 2},
		"it is not kept any more":   {left: -time.Hour, node: true, pod: true, want: 1, later: 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a"}}
			d.Spec.Replicas, d.Spec.Selector = 1, &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}
			d.Spec.Template.Spec.Class.Name = "a"
			class := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "a"}, NodeTemplate: &machinev1alpha1.NodeTemplate{
				InstanceType: "a", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			}}
			machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shoot", Name: "a-1", UID: "a-1", Labels: map[string]string{"name": "a", "node": "n"}, CreationTimestamp: metav1.NewTime(clock.Now().Add(-time.Hour)),
			}}
			machine.Status.CurrentStatus = machinev1alpha1.CurrentStatus{Phase: machinev1alpha1.MachineFailed, PreserveExpiryTime: new(metav1.NewTime(clock.Now().Add(tc.left)))}
			manager := machineManager()
			seed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(d, class, machine, manager).Build()
			var inShoot []runtime.Object
			if tc.node { // healthy again, which the machine-controller-manager has not seen
				node := healthyNode("n")
				node.CreationTimestamp = machine.CreationTimestamp
				node.Spec.Taints = []corev1.Taint{{Key: machinev1alpha1.NodePreservedKey, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
				inShoot = append(inShoot, node)
			}
			if tc.pod {
				inShoot = append(inShoot, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p", CreationTimestamp: metav1.NewTime(clock.Now())},
					Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
						{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
					}},
				})
			}
			s := newScaler(t, seed, fakeclient.NewClientset(inShoot...), clock, "--nodes=0:3:shoot.a", "--max-total-unready-percentage=100")
			for _, want := range []int32{tc.want, tc.later} {
				if err := s.Scan(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := seed.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
					t.Fatal(err)
				}
				if d.Spec.Replicas != want {
					t.Errorf("at %s: %d replicas, want %d", clock.Now(), d.Spec.Replicas, want)
				}
				clock.SetTime(clock.Now().Add(20 * time.Minute)) // longer than a machine may take to join
			}
		})
	}
}

// poolOfZones is a state with a group of a pool in each zone, and a node in each, as the machine-controller-manager labels them.
func poolOfZones(zones ...string) *state {
	st := &state{nodes: map[string]plan.Occupied{}, owners: map[string]*machineState{}, groupOf: map[string]*groupState{}}
	for _, zone := range zones {
		g := &groupState{deployment: &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool-" + zone}}}
		g.Name, g.Target, g.Max = g.deployment.Name, 1, 5
		g.deployment.Spec.Template.Spec.NodeTemplate.ObjectMeta.Labels = map[string]string{constants.WorkerPool: "pool"}
		g.class = &machinev1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: "pool-" + zone}, NodeTemplate: &machinev1alpha1.NodeTemplate{Zone: zone, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
		}
		node := healthyNode("node-" + zone)
		node.Labels = map[string]string{
			constants.WorkerPool: "pool", corev1.LabelTopologyZone: zone, corev1.LabelHostname: node.Name, machinev1alpha1.MachineLabelKey: "machine-" + zone,
		}
		st.groups = append(st.groups, g)
		st.nodes[node.Name], st.groupOf[node.Name] = plan.Occupied{Node: node}, g
		st.owners[node.Name] = &machineState{Machine: &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-" + zone}}, node: node}
	}
	return st
}

// The Node of each machine has the name of it as a label. Zones of a pool are similar nevertheless, and get nodes in turn.
func TestZonesWithNodesAreBalanced(t *testing.T) {
	s := newScaler(t, nil, fakeclient.NewClientset(), clocktesting.NewFakeClock(time.Now()), "--balance-similar-node-groups=true")
	st := poolOfZones("a", "b")
	if err := s.templates(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	in := plan.UpInput{
		Cluster: oneEach{map[string]bool{}}, Balance: true, Timeout: time.Minute, Clock: s.clock, Expander: plan.Expander{Names: []string{plan.Random}, Intn: func(int) int { return 0 }},
	}
	for i := range 4 {
		in.Pods = append(in.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}})
	}
	for _, g := range st.groups {
		in.Groups = append(in.Groups, &g.Group)
	}
	got, err := plan.Up(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"pool-a": 2, "pool-b": 2}, got.Increases); diff != "" {
		t.Errorf("new nodes (-want +got):\n%s", diff)
	}
}

// New nodes are not like one whose machine is kept, or is being deleted.
func TestExample(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*machineState)
		want   string
	}{
		"its own":          {change: func(*machineState) {}, want: "node-a"},
		"its own is kept":  {change: func(m *machineState) { m.kept = true }, want: "node-b"},
		"its own is going": {change: func(m *machineState) { m.going = true }, want: "node-b"},
	} {
		t.Run(name, func(t *testing.T) {
			st := poolOfZones("a", "b")
			tc.change(st.owners["node-a"])
			if got, _ := (&Scaler{}).example(st.groups[0], st); got.Node == nil || got.Node.Name != tc.want {
				t.Errorf("the example is %+v, want %s", got.Node, tc.want)
			}
		})
	}
}

// A zone of a pool has no node: a new one is expected to have the labels of its zone, not those of the zone whose node is the example. Volumes are bound to
// zones by them.
func TestZoneWithoutNodes(t *testing.T) {
	labelsOf := func(zone string, more ...string) map[string]string {
		out := map[string]string{
			corev1.LabelTopologyZone: zone, corev1.LabelFailureDomainBetaZone: zone, corev1.LabelTopologyRegion: "r", corev1.LabelFailureDomainBetaRegion: "r",
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	a := labelsOf("a", "topology.driver/zone", "a", "topology.driver/rack", "7")
	b := labelsOf("b", "topology.driver/zone", "b", "topology.driver/rack", "1", "topology.driver/region", "r")
	for name, tc := range map[string]struct {
		had, has bool // whether zone a has had a node before, and has one now
		other    bool // whether zone b has one
		want     map[string]string
	}{
		"its own node":        {has: true, other: true, want: a},
		"its own last node":   {had: true, other: true, want: a},
		"one of another zone": {other: true, want: labelsOf("a", "topology.driver/zone", "a", "topology.driver/region", "r")},
		"the class":           {want: labelsOf("a")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScaler(t, nil, fakeclient.NewClientset(), clocktesting.NewFakeClock(time.Now()))
			st := poolOfZones("a", "b")
			st.groups[0].class.NodeTemplate.Region = "r"
			maps.Copy(st.nodes["node-a"].Node.Labels, a)
			maps.Copy(st.nodes["node-b"].Node.Labels, b)
			if tc.had {
				if err := s.templates(t.Context(), st); err != nil {
					t.Fatal(err)
				}
			}
			if !tc.has {
				delete(st.nodes, "node-a")
			}
			if !tc.other {
				delete(st.nodes, "node-b")
			}
			if err := s.templates(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			got := maps.Clone(st.groups[0].Template.Node.Labels)
			maps.DeleteFunc(got, func(key, _ string) bool {
				return !strings.HasPrefix(key, "topology.") && !strings.HasPrefix(key, "failure-domain.")
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("labels of a new node (-want +got):\n%s", diff)
			}
		})
	}
}

// A node of a pool without nodes is expected to have the virtual capacity that the machine-controller-manager writes.
func TestVirtualCapacityOfClass(t *testing.T) {
	g := poolOfZones("a").groups[0]
	g.class.NodeTemplate.VirtualCapacity = corev1.ResourceList{"example.com/license": resource.MustParse("5"), corev1.ResourceCPU: resource.MustParse("100")}
	got := (&Options{}).classTemplate(g.deployment, g.class).Node.Status.Allocatable
	license := got["example.com/license"]
	if license.String() != "5" || got.Cpu().String() != "4" {
		t.Errorf("a new node has %v", got)
	}
}

// A pool has no node any more, and its labels or taints change: a new node is as they are now, not as the last one was.
func TestRememberedNode(t *testing.T) {
	s := newScaler(t, nil, fakeclient.NewClientset(), clocktesting.NewFakeClock(time.Now()))
	st := poolOfZones("a")
	template := &st.groups[0].deployment.Spec.Template.Spec.NodeTemplate
	labels := func(name string, last bool, want map[string]string) {
		t.Helper()
		if err := s.templates(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		node := st.groups[0].Template.Node
		got := map[string]string{constants.WorkerPool: node.Labels[constants.WorkerPool], "x": node.Labels["x"]}
		if diff := cmp.Diff(want, got); diff != "" || (node.Status.Capacity.Storage().String() == "7") != last {
			t.Errorf("%s: capacity is %v, labels (-want +got):\n%s", name, node.Status.Capacity, diff)
		}
	}
	st.nodes["node-a"].Node.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7")} // the class does not have it
	labels("with a node", true, map[string]string{constants.WorkerPool: "pool", "x": ""})
	clear(st.nodes)
	labels("without a node", true, map[string]string{constants.WorkerPool: "pool", "x": ""})
	template.ObjectMeta.Labels = map[string]string{constants.WorkerPool: "pool", "x": "y"}
	labels("with another label", false, map[string]string{constants.WorkerPool: "pool", "x": "y"})
	template.ObjectMeta.Labels = map[string]string{constants.WorkerPool: "pool"}
	template.Spec.Taints = []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	labels("with a taint", false, map[string]string{constants.WorkerPool: "pool", "x": ""})
	if got := st.groups[0].Template.Node.Spec.Taints; len(got) != 1 {
		t.Errorf("taints are %v", got)
	}
}
