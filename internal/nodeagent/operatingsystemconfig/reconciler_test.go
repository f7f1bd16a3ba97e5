package operatingsystemconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/imagefile"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

// cluster has the Node of the machine, with annotations, and the Secret for configurations.
func (m *machine) cluster(annotations map[string]string) client.WithWatch {
	return clientfake.NewClientBuilder().WithObjects(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname, Annotations: annotations}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"}},
	).Build()
}

func (m *machine) publish(osc *extensionsv1alpha1.OperatingSystemConfig) {
	m.t.Helper()
	data, err := yaml.Marshal(osc)
	if err != nil {
		m.t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "osc"}}
	secret.Data = map[string][]byte{nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig: data}
	if err := m.Client.Update(m.t.Context(), secret); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) pass() (reconcile.Result, error) {
	return m.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "kube-system", Name: "osc"}})
}

// The agent must not report what only the restarted agent does, and restart even if the API server is not available.
func TestAgentRestartsBeforeItReports(t *testing.T) {
	m, unavailable := newMachine(t), errors.New("unavailable")
	var broken bool
	m.Client = interceptor.NewClient(m.cluster(nil), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if broken {
				return unavailable
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	m.Recorder, m.Clock, m.KubernetesVersion = events.NewFakeRecorder(10), clock.RealClock{}, "1.36.1"
	reported := func() (version, checksum string) {
		t.Helper()
		node := &corev1.Node{}
		if err := m.Client.Get(t.Context(), client.ObjectKey{Name: m.Hostname}, node); err != nil {
			t.Fatal(err)
		}
		return node.Annotations[constants.WorkerKubernetesVersion], node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
	}
	m.publish(example())
	if _, err := m.pass(); err != nil {
		t.Fatal(err)
	}
	_, first := reported()
	next := example()
	next.Spec.Files[3] = inline("/etc/agent", "configuration with another version")
	m.publish(next)
	broken = true
	if _, err := m.pass(); err != nil {
		t.Fatal(err)
	}
	if _, checksum := reported(); checksum != first || m.systemd.Unit(nodeagentconfigv1alpha1.UnitName).Starts != 1 {
		t.Errorf("checksum %s, then %s; the agent is %+v", first, checksum, m.systemd.Unit(nodeagentconfigv1alpha1.UnitName))
	}
	// It has restarted.
	m.outdated, m.KubernetesVersion = false, "1.36.3"
	if _, err := m.pass(); !errors.Is(err, unavailable) {
		t.Errorf("error is %v", err)
	}
	broken = false
	if _, err := m.pass(); err != nil {
		t.Fatal(err)
	}
	if version, checksum := reported(); version != "1.36.3" || checksum == first || m.systemd.Unit(nodeagentconfigv1alpha1.UnitName).Starts != 1 {
		t.Errorf("version %s, checksum %s, then %s", version, first, checksum)
	}
}

func TestConfigurationThatWasBegunIsNotDelayedAgain(t *testing.T) {
	m, clk := newMachine(t), clocktesting.NewFakeClock(time.Now())
	m.Client, m.Recorder, m.Clock = m.cluster(map[string]string{constants.NodeAgentReconciliationDelay: "5m"}), events.NewFakeRecorder(10), clk
	delay := func() time.Duration {
		t.Helper()
		result, err := m.pass()
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	m.publish(example())
	if wait := delay(); wait != 0 {
		t.Fatalf("a machine's first configuration is delayed by %s", wait)
	}
	next := example()
	next.Spec.Files[1] = inImage("/opt/bin/app", "app:2")
	m.publish(next)
	if wait := delay(); wait != 5*time.Minute {
		t.Fatalf("a new configuration is delayed by %s", wait)
	}
	clk.Step(5 * time.Minute)
	extract := m.Extract
	m.Extract = func(context.Context, rootfs.Dir, string, []imagefile.File, func() error) error { panic("crash") }
	func() {
		defer func() { _ = recover() }()
		_, _ = m.pass()
		t.Fatal("the pass did not reach the point where it is to crash")
	}()
	m.Extract, m.seen.checksum = extract, "" // it has restarted
	if wait := delay(); wait != 0 {
		t.Errorf("the configuration that was begun is delayed by %s", wait)
	}
	m.publish(example())
	if wait := delay(); wait != 5*time.Minute {
		t.Errorf("another configuration is delayed by %s", wait)
	}
}

func TestOldContainerdIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime string
		want    []string
	}{
		"containerd 2": {runtime: "containerd://2.3.4", want: []string{"Normal OSCApplied Operating system config has been applied successfully"}},
		"containerd 1": {runtime: "containerd://1.7.22", want: []string{
			"Normal OSCApplied Operating system config has been applied successfully",
			"Warning ContainerdTooOld containerd://1.7.22 ignores its configuration, which is for version 2 or later",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, recorder := newMachine(t), events.NewFakeRecorder(10)
			m.Client, m.Recorder, m.Clock = m.cluster(nil), recorder, clock.RealClock{}
			node := &corev1.Node{}
			if err := m.Client.Get(t.Context(), client.ObjectKey{Name: m.Hostname}, node); err != nil {
				t.Fatal(err)
			}
			node.Status.NodeInfo.ContainerRuntimeVersion = tc.runtime
			if err := m.Client.Status().Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			osc := example()
			osc.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD}
			m.publish(osc)
			for range 2 { // the second pass changes nothing
				if _, err := m.pass(); err != nil {
					t.Fatal(err)
				}
			}
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
