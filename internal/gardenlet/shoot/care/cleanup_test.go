package care

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/access"
)

// fakeShoot is a shoot in memory.
type fakeShoot struct {
	client.Client
	closed      bool
	unreachable map[string]bool
}

func (*fakeShoot) Healthz(context.Context) error { return nil }
func (a *fakeShoot) Close()                      { a.closed = true }

func (a *fakeShoot) ReachNode(_ context.Context, name string) error {
	if a.unreachable[name] {
		return errors.New("connection refused")
	}
	return nil
}

func TestClientsAreKeptUntilTheirCredentialsExpireSoon(t *testing.T) {
	var created []*fakeShoot
	reads := 0
	c := &shootClients{connect: func([]byte) (ShootClient, error) {
		created = append(created, &fakeShoot{})
		return created[len(created)-1], nil
	}}
	shoot := types.NamespacedName{Namespace: "garden-dev", Name: "a"}
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	get := func(cas string) {
		t.Helper()
		if _, err := c.get(shoot, cas, now, func() ([]byte, error) { reads++; return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	get("one")
	get("one")
	if len(created) != 1 || reads != 1 {
		t.Fatalf("%d clients were created, and the kubeconfig was read %d times", len(created), reads)
	}
	get("two")
	if len(created) != 2 || !created[0].closed {
		t.Fatalf("the client with the old credentials is not closed, of %d", len(created))
	}
	now = now.Add(access.RenewAfter)
	get("two")
	if len(created) != 3 || !created[1].closed {
		t.Fatalf("the client is used until its credentials expire, of %d", len(created))
	}
	c.close(shoot)
	if !created[2].closed || len(c.byShoot) != 0 {
		t.Error("the client of a deleted shoot is not closed")
	}
}

func TestCleanUpShoot(t *testing.T) {
	pod := func(name, reason string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Status: corev1.PodStatus{Phase: phase, Reason: reason}}
	}
	stuck := pod("stuck", "", corev1.PodRunning)
	stuck.Finalizers, stuck.DeletionTimestamp = []string{"example.com/x"}, new(metav1.NewTime(now.Add(-time.Hour)))
	elsewhere := pod("elsewhere", "Evicted", corev1.PodFailed)
	elsewhere.Namespace = "default"
	webhooks := []admissionregistrationv1.MutatingWebhook{{Name: "w.example.com", Rules: []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Create, "pods")}}}
	config := func(name string, labels map[string]string) *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Webhooks: webhooks}
	}
	for name, tc := range map[string]struct {
		remediate bool
		changed   []string
	}{
		"only pods":             {},
		"pods and webhooks too": {remediate: true, changed: []string{"users"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := fake.NewClientBuilder().WithObjects(
				pod("running", "", corev1.PodRunning), pod("evicted", "Evicted", corev1.PodFailed), pod("failed", "Error", corev1.PodFailed), stuck.DeepCopy(), elsewhere.DeepCopy(),
				config("users", nil), config("gardener", map[string]string{resourcesv1alpha1.ManagedBy: "gardener"}),
				config("excluded", map[string]string{"remediation.webhook.shoot.gardener.cloud/exclude": "true"}),
			).WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }).Build()
			o := &observed{shootClient: &fakeShoot{Client: shoot}, observedNodes: observedNodes{nodes: []corev1.Node{{}}}}
			if err := o.readWebhooks(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(now), Config: gardenletconfigv1alpha1.ShootCareControllerConfiguration{WebhookRemediatorEnabled: &tc.remediate}}}
			if err := r.cleanUpShoot(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			pods := &corev1.PodList{}
			if err := shoot.List(t.Context(), pods); err != nil {
				t.Fatal(err)
			}
			var remaining []string
			for _, p := range pods.Items {
				remaining = append(remaining, p.Name)
			}
			if diff := cmp.Diff([]string{"elsewhere", "failed", "running", "stuck"}, remaining); diff != "" { // the stuck pod has a finalizer
				t.Errorf("remaining pods (-want +got):\n%s", diff)
			}
			configs := &admissionregistrationv1.MutatingWebhookConfigurationList{}
			if err := shoot.List(t.Context(), configs); err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, c := range configs.Items {
				if c.Webhooks[0].FailurePolicy != nil && c.Annotations["gardener.cloud/warning"] != "" {
					changed = append(changed, c.Name)
				}
			}
			if diff := cmp.Diff(tc.changed, changed); diff != "" {
				t.Errorf("configurations that were changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckTunnel(t *testing.T) {
	node := func(name string, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	own := node("silent", "True")
	own.Annotations = map[string]string{"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		fails bool
	}{
		"no nodes":                       {},
		"one node responds":              {nodes: []corev1.Node{node("silent", "True"), node("a", "True")}},
		"no node responds":               {nodes: []corev1.Node{node("silent", "True")}, fails: true},
		"the node is not ready":          {nodes: []corev1.Node{node("silent", "False")}},
		"nodes of the user do not count": {nodes: []corev1.Node{own, own, own, node("a", "True")}},
		"only a node of the user":        {nodes: []corev1.Node{own}},
		"only the first three count":     {nodes: []corev1.Node{node("silent", "True"), node("silent", "True"), node("silent", "True"), node("a", "True")}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkTunnel(t.Context(), &fakeShoot{unreachable: map[string]bool{"silent": true}}, tc.nodes); (err != nil) != tc.fails {
				t.Errorf("checkTunnel() = %v", err)
			}
		})
	}
}

func TestHeartbeat(t *testing.T) {
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-p-1"}, Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now))}}
	if got := heartbeat([]coordinationv1.Lease{lease}, "extension-p-1"); !got.Equal(now) {
		t.Errorf("heartbeat() is %s", got)
	}
	if got := heartbeat([]coordinationv1.Lease{lease}, "extension-other"); !got.IsZero() {
		t.Errorf("heartbeat() without a Lease is %s", got)
	}
	stale := extensionCondition{kind: "Worker", typ: "local", name: "w", heartbeat: &now, installation: "p-1"}
	const want = `Worker "w" of type "local": the health report is outdated, as the extension controller of ControllerInstallation "p-1" does not renew its heartbeat Lease: ` +
		`see its pods in namespace "extension-p-1" of the seed`
	if got := stale.finding(time.Minute, now.Add(2*time.Minute)); got == nil || got.message != want {
		t.Errorf("finding is %+v, want %s", got, want)
	}
}
