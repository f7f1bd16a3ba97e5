package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/machinecontroller/bootstraptoken"
	"gardener.cloud/gardener/internal/machinecontroller/drain"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/test/behind"
)

// infrastructure has the machine, or says that it is lost.
type infrastructure struct {
	driver.Driver
	lost bool
}

func (i infrastructure) GetMachineStatus(context.Context, driver.Request) (driver.Status, error) {
	status := driver.Status{NodeName: "n"}
	if i.lost {
		return status, driver.Errorf(driver.NotFound, "it has ended")
	}
	return status, nil
}

func (infrastructure) DeleteMachine(context.Context, driver.Request) error { return nil }

// newReconciler returns a reconciler with a machine of class c. Changes of Nodes fail with patch, if it is not nil.
func newReconciler(t *testing.T, d driver.Driver, m *machinev1alpha1.Machine, node *corev1.Node, patch error) *reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	m.Namespace, m.Spec.ProviderID, m.Spec.Class.Name = "shoot", "fake:///m", "c"
	if m.Finalizers == nil {
		m.Finalizers = []string{finalizer}
	}
	control := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(m).WithObjects(m, &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "c"},
	}).Build()
	target := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				if patch != nil {
					return patch
				}
				return c.Patch(ctx, o, p, options...)
			},
		}).Build()
	return &reconciler{
		controlCache: control, controlAPI: control, targetCache: target, targetAPI: target, driver: d, tokens: &bootstraptoken.Tokens{TargetCache: target},
		drainer: &drain.Drainer{TargetCache: target}, events: events.NewFakeRecorder(10), clock: testingclock.NewFakePassiveClock(now), limits: limits,
		maxReplaced: 1, reachable: func() (time.Time, bool) { return time.Time{}, true },
	}
}

// A template that cannot be applied to the Node keeps a machine from becoming Running, but the health of a running one is still checked.
func TestTemplateRefused(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		phase, want machinev1alpha1.MachinePhase
		since       time.Duration
		node        *corev1.Node
	}{
		"a joining one waits":                        {machinev1alpha1.MachinePending, machinev1alpha1.MachinePending, time.Minute, readyNode},
		"a running one stays so":                     {machinev1alpha1.MachineRunning, machinev1alpha1.MachineRunning, time.Hour, readyNode},
		"one that stops to report is unknown":        {machinev1alpha1.MachineRunning, machinev1alpha1.MachineUnknown, time.Hour, unknownNode},
		"one that is unhealthy for long is replaced": {machinev1alpha1.MachineUnknown, machinev1alpha1.MachineFailed, time.Hour, unknownNode},
		"an unknown one that is healthy again runs":  {machinev1alpha1.MachineUnknown, machinev1alpha1.MachineRunning, time.Hour, readyNode},
	} {
		t.Run(name, func(t *testing.T) {
			node, m := tc.node.DeepCopy(), machineIn(tc.phase, tc.since)
			node.Name = "n"
			m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
			r := newReconciler(t, infrastructure{}, m, node, refused)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); !errors.Is(err, refused) {
				t.Errorf("error is %v", err)
			}
			if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Status.CurrentStatus.Phase != tc.want {
				t.Errorf("phase is %q (%v), want %q", m.Status.CurrentStatus.Phase, err, tc.want)
			}
		})
	}
}

// A drain that a webhook refuses is retried. The machine does not count as failed.
func TestDrainRefused(t *testing.T) {
	node, m := readyNode.DeepCopy(), machineIn(machinev1alpha1.MachineRunning, time.Minute)
	node.Name = "n"
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	r := newReconciler(t, infrastructure{}, m, node, errors.New("denied by a webhook"))
	if err := r.controlCache.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("it is not retried: %v, %v", result, err)
	}
	if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	last := m.Status.LastOperation
	if last.Type != machinev1alpha1.MachineOperationDrainNode || last.State != machinev1alpha1.MachineStateProcessing || !strings.Contains(last.Description, "denied by a webhook") {
		t.Errorf("last operation is %+v", last)
	}
}

// The Node of a machine that ends just after it has joined is deleted.
func TestLostAsItJoins(t *testing.T) {
	for name, phase := range map[string]machinev1alpha1.MachinePhase{
		"noticed before it is deleted": machinev1alpha1.MachinePending, "noticed when it is deleted": machinev1alpha1.MachineFailed,
	} {
		t.Run(name, func(t *testing.T) {
			node, m := readyNode.DeepCopy(), machineIn(phase, time.Minute)
			node.Name = "n"
			r := newReconciler(t, infrastructure{lost: true}, m, node, nil)
			key := client.ObjectKeyFromObject(m)
			pass := func() {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			pass()
			if err := r.controlCache.Get(t.Context(), key, m); err != nil || m.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed {
				t.Errorf("phase is %q (%v)", m.Status.CurrentStatus.Phase, err)
			}
			if got := m.Labels[machinev1alpha1.NodeLabelKey]; phase == machinev1alpha1.MachinePending && got != "n" {
				t.Errorf("its Node is %q", got)
			}
			if err := r.controlCache.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			pass()
			if err := r.controlCache.Get(t.Context(), key, m); !apierrors.IsNotFound(err) {
				t.Errorf("machine: %v, its status is %+v", err, m.Status)
			}
			if err := r.targetCache.Get(t.Context(), client.ObjectKeyFromObject(node), node); !apierrors.IsNotFound(err) {
				t.Errorf("Node: %v", err)
			}
		})
	}
}

// A Machine is in the seed. Users of the shoot, who can write the status of Nodes, must not make it large.
func TestStatusOfNodeIsLimited(t *testing.T) {
	node, m := readyNode.DeepCopy(), machineIn(machinev1alpha1.MachineRunning, time.Hour)
	node.Name = "n"
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	ready, long := node.Status.Conditions, strings.Repeat("x", 10000)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeConditionType(long)}}
	for i := range 500 {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(fmt.Sprintf("c-%d", i)), Reason: long, Message: long})
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: fmt.Sprintf("a-%d", i)}, corev1.NodeAddress{Type: corev1.NodeHostName, Address: long})
	}
	node.Status.Conditions = append(node.Status.Conditions, ready...)
	r := newReconciler(t, infrastructure{}, m, node, nil)
	key := client.ObjectKeyFromObject(m)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := r.controlCache.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	status := m.Status
	if data, err := json.Marshal(status); err != nil || len(data) > 200<<10 {
		t.Errorf("the status has %d bytes (%v)", len(data), err)
	}
	if last := status.Conditions[len(status.Conditions)-1]; status.CurrentStatus.Phase != machinev1alpha1.MachineRunning || last.Type != corev1.NodeReady {
		t.Errorf("phase is %q, the last condition %q", status.CurrentStatus.Phase, last.Type)
	}
	// It is not written again.
	version := m.ResourceVersion
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := r.controlCache.Get(t.Context(), key, m); err != nil || m.ResourceVersion != version {
		t.Errorf("the same status is written again (%v)", err)
	}
}

// A Node that changes all the time, as its kubelet's credentials or a user of the shoot may have it, has its Machine written now and then only,
// and with what is current at last.
func TestFlappingNode(t *testing.T) {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"}}}
	m.Status.CurrentStatus.Phase = machinev1alpha1.MachineRunning
	r := newReconciler(t, infrastructure{}, m, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nil)
	writes := 0
	r.controlCache = interceptor.NewClient(r.controlCache.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	clock := testingclock.NewFakePassiveClock(now)
	r.clock = clock
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shoot", Name: "m"}}
	var last reconcile.Result
	message := ""
	for i := range 59 { // two per second
		clock.SetTime(now.Add(time.Duration(i) * 500 * time.Millisecond))
		node := &corev1.Node{}
		if err := r.targetCache.Get(t.Context(), client.ObjectKey{Name: "n"}, node); err != nil {
			t.Fatal(err)
		}
		message = fmt.Sprint("change ", i)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: message}}
		if err := r.targetCache.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		var err error
		if last, err = r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if most := writesAtOnce + 3; writes == 0 || writes > most {
		t.Errorf("%d writes in 30s, want at most %d", writes, most)
	}
	if last.RequeueAfter <= 0 || last.RequeueAfter > writeEvery {
		t.Fatalf("the next pass is after %v, want one within %v", last.RequeueAfter, writeEvery)
	}
	clock.SetTime(clock.Now().Add(last.RequeueAfter))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := r.controlCache.Get(t.Context(), request.NamespacedName, m); err != nil {
		t.Fatal(err)
	}
	if got := m.Status.Conditions[0].Message; got != message {
		t.Errorf("the Machine has condition %q of its Node, want %q", got, message)
	}
}

// A machine that had joined when its control plane moved to another seed is not replaced for not joining. Its Machine comes without the status.
func TestRestored(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		reason string
		want   machinev1alpha1.MachinePhase
	}{
		"one that had a Node":       {labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"}, want: machinev1alpha1.MachineUnknown},
		"one that is being updated": {labels: map[string]string{machinev1alpha1.NodeLabelKey: "n"}, reason: machinev1alpha1.ReadyForUpdate, want: machinev1alpha1.MachineInPlaceUpdating},
		"one that had none":         {want: machinev1alpha1.MachinePending},
	} {
		t.Run(name, func(t *testing.T) {
			node, m := unknownNode.DeepCopy(), &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: tc.labels}}
			node.Name = "n"
			if tc.reason != "" {
				node.Labels = map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true", machinev1alpha1.NodeSelectedForUpdate: "true"}
				node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: tc.reason})
			}
			r := newReconciler(t, infrastructure{}, m, node, nil)
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
			if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Status.CurrentStatus.Phase != tc.want {
				t.Errorf("phase is %q (%v), want %q", m.Status.CurrentStatus.Phase, err, tc.want)
			}
		})
	}
}

// A Node whose label is removed before its agent has begun can be selected again, which only those of running machines are.
func TestNoLongerSelected(t *testing.T) {
	node, m := readyNode.DeepCopy(), machineIn(machinev1alpha1.MachineInPlaceUpdating, time.Minute)
	node.Name, node.Labels = "n", map[string]string{machinev1alpha1.NodeCandidateForUpdate: "true"}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: machinev1alpha1.ReadyForUpdate,
	})
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	r := newReconciler(t, infrastructure{}, m, node, nil)
	for range 2 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m), r.targetCache.Get(t.Context(), client.ObjectKeyFromObject(node), node)); err != nil {
		t.Fatal(err)
	}
	if phase, reason := m.Status.CurrentStatus.Phase, updateCondition(node).Reason; phase != machinev1alpha1.MachineRunning || reason != machinev1alpha1.CandidateForUpdate {
		t.Errorf("phase is %q, and the reason %q", phase, reason)
	}
}

// The finalizer is the one that other implementations use, too. A Machine of an earlier version has another one: it gets the right one, or, if it is
// being deleted, loses both.
func TestFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		before  []string
		deleted bool
		want    []string
	}{
		"a Machine without a finalizer gets it":     {before: []string{}, want: []string{finalizer}},
		"that of an earlier version is replaced":    {before: []string{formerFinalizer, "other"}, want: []string{"other", finalizer}},
		"of a deleted Machine it is removed":        {before: []string{finalizer, "other"}, deleted: true, want: []string{"other"}},
		"and so is that of an earlier version":      {before: []string{formerFinalizer, "other"}, deleted: true, want: []string{"other"}},
		"and so are both, of an update that failed": {before: []string{formerFinalizer, finalizer, "other"}, deleted: true, want: []string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			node, m := readyNode.DeepCopy(), machineIn(machinev1alpha1.MachineRunning, time.Hour)
			node.Name, m.Finalizers = "n", tc.before
			m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
			r := newReconciler(t, infrastructure{}, m, node, nil)
			if tc.deleted {
				if err := r.controlCache.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
			if err := r.controlCache.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, m.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcileWithStaleCache(t *testing.T) {
	node, m := readyNode.DeepCopy(), machineIn(machinev1alpha1.MachineRunning, time.Minute)
	node.Name = "n"
	m.Labels = map[string]string{machinev1alpha1.NodeLabelKey: "n"}
	r := newReconciler(t, infrastructure{}, m, node, nil)
	api := r.controlCache.(client.WithWatch) //nolint:forcetypeassert // a fake client
	behind.Case[*machinev1alpha1.Machine]{
		API: api, Object: m, Changed: changed(),
		Status: func(m *machinev1alpha1.Machine) any { return m.Status.CurrentStatus.Phase },
		Other:  func(m *machinev1alpha1.Machine) { m.Status.CurrentStatus.Phase = machinev1alpha1.MachineUnknown },
		Pass: func(cache client.WithWatch) {
			r.controlCache = cache
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}

// An infrastructure that fails in another way each time is called again with a delay.
func TestChanged(t *testing.T) {
	failing := func(text string) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{Status: machinev1alpha1.MachineStatus{
			LastOperation: machinev1alpha1.LastOperation{State: machinev1alpha1.MachineStateFailed, ErrorCode: text, Description: text},
		}}
	}
	if changed().Update(event.UpdateEvent{ObjectOld: failing("a"), ObjectNew: failing("b")}) {
		t.Error("another error is a reason to reconcile at once")
	}
}
