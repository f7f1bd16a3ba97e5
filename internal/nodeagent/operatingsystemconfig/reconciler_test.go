package operatingsystemconfig

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// An agent must not report as done what only the one after it does, nor forget to start anew because the API server is away.
func TestAgentStartsAnewBeforeItReports(t *testing.T) {
	m, away := newMachine(t), errors.New("away")
	var broken bool
	m.Client = interceptor.NewClient(clientfake.NewClientBuilder().WithObjects(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"}},
	).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if broken {
				return away
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	m.Recorder, m.Clock, m.KubernetesVersion = events.NewFakeRecorder(10), clock.RealClock{}, "1.36.1"
	publish := func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		t.Helper()
		data, err := yaml.Marshal(osc)
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"}}
		secret.Data = map[string][]byte{nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig: data}
		if err := m.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() error {
		_, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "kube-system", Name: "osc"}})
		return err
	}
	reported := func() (version, checksum string) {
		t.Helper()
		node := &corev1.Node{}
		if err := m.Client.Get(t.Context(), client.ObjectKey{Name: m.Hostname}, node); err != nil {
			t.Fatal(err)
		}
		return node.Annotations[constants.WorkerKubernetesVersion], node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
	}
	publish(example())
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	_, first := reported()
	next := example()
	next.Spec.Files[3] = inline("/etc/agent", "configuration with another version")
	publish(next)
	broken = true
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	if _, checksum := reported(); checksum != first || m.systemd.Unit(nodeagentconfigv1alpha1.UnitName).Starts != 1 {
		t.Errorf("checksum %s, then %s; the agent is %+v", first, checksum, m.systemd.Unit(nodeagentconfigv1alpha1.UnitName))
	}
	// The next one comes.
	m.outdated, m.KubernetesVersion = false, "1.36.3"
	if err := pass(); !errors.Is(err, away) {
		t.Errorf("error is %v", err)
	}
	broken = false
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	if version, checksum := reported(); version != "1.36.3" || checksum == first || m.systemd.Unit(nodeagentconfigv1alpha1.UnitName).Starts != 1 {
		t.Errorf("version %s, checksum %s, then %s", version, first, checksum)
	}
}
