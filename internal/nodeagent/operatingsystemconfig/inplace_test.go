package operatingsystemconfig

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// inPlaceOSC is a configuration of a pool that is updated in place, with changes.
func inPlaceOSC(change ...func(*extensionsv1alpha1.OperatingSystemConfig)) *extensionsv1alpha1.OperatingSystemConfig {
	osc := example()
	osc.Spec.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdates{OperatingSystemVersion: "1.0.0", Kubelet: "1.35.4"}
	for _, c := range change {
		c(osc)
	}
	return osc
}

func kubeletVersion(version string) func(*extensionsv1alpha1.OperatingSystemConfig) {
	return func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		osc.Spec.InPlaceUpdates.Kubelet = version
		osc.Spec.Files = append(osc.Spec.Files, inline("/etc/kubelet-version", version))
	}
}

func kubeletConfig(text string) func(*extensionsv1alpha1.OperatingSystemConfig) {
	return func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		osc.Spec.Files = append(osc.Spec.Files, inline(extensionsv1alpha1.OperatingSystemConfigFilePathKubeletConfig, text))
	}
}

func rotatedAt(cas, key *metav1.Time) func(*extensionsv1alpha1.OperatingSystemConfig) {
	return func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		osc.Spec.InPlaceUpdates.CredentialsRotation = &extensionsv1alpha1.CredentialsRotation{
			CertificateAuthorities: &extensionsv1alpha1.CARotation{LastInitiationTime: cas},
			ServiceAccountKey:      &extensionsv1alpha1.ServiceAccountKeyRotation{LastInitiationTime: key},
		}
	}
}

func systemVersion(version string, command ...string) func(*extensionsv1alpha1.OperatingSystemConfig) {
	return func(osc *extensionsv1alpha1.OperatingSystemConfig) {
		osc.Spec.InPlaceUpdates.OperatingSystemVersion = version
		if len(command) > 0 {
			osc.Status.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesStatus{OSUpdate: &extensionsv1alpha1.OSUpdate{Command: command[0], Args: command[1:]}}
		}
	}
}

func TestChangesOf(t *testing.T) {
	at := new(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	for name, tc := range map[string]struct {
		before, after *extensionsv1alpha1.OperatingSystemConfig
		want          changes
	}{
		"a new machine has none":      {after: inPlaceOSC()},
		"other pools have none":       {before: example(), after: inPlaceOSC()},
		"no change":                   {before: inPlaceOSC(), after: inPlaceOSC()},
		"a patch version":             {before: inPlaceOSC(), after: inPlaceOSC(kubeletVersion("1.35.5"))},
		"a minor version":             {before: inPlaceOSC(), after: inPlaceOSC(kubeletVersion("1.36.1")), want: changes{kubeletVersion: true}},
		"the CPU manager":             {before: inPlaceOSC(kubeletConfig("cpuManagerPolicy: none")), after: inPlaceOSC(kubeletConfig("cpuManagerPolicy: static")), want: changes{kubeletSettings: true}},
		"evictions":                   {before: inPlaceOSC(kubeletConfig("evictionHard: {memory.available: 1Gi}")), after: inPlaceOSC(kubeletConfig("evictionHard: {memory.available: 2Gi}")), want: changes{kubeletSettings: true}},
		"reserved resources":          {before: inPlaceOSC(kubeletConfig("kubeReserved: {cpu: 80m}")), after: inPlaceOSC(kubeletConfig("kubeReserved: {cpu: 90m}")), want: changes{kubeletSettings: true}},
		"other settings":              {before: inPlaceOSC(kubeletConfig("maxPods: 100")), after: inPlaceOSC(kubeletConfig("maxPods: 110"))},
		"CAs":                         {before: inPlaceOSC(), after: inPlaceOSC(rotatedAt(at, nil)), want: changes{cas: true}},
		"the key of service accounts": {before: inPlaceOSC(rotatedAt(at, nil)), after: inPlaceOSC(rotatedAt(at, at)), want: changes{serviceAccountKey: true}},
		"the operating system":        {before: inPlaceOSC(), after: inPlaceOSC(systemVersion("2.0.0")), want: changes{operatingSystem: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := changesOf(tc.before, tc.after, "me")
			if err != nil || got != tc.want {
				t.Errorf("changesOf() = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// updating is a machine whose first configuration is applied.
type updating struct {
	*machine
	clock *clocktesting.FakeClock
	// done is what was done besides files and units.
	done []string
	// unhealthy and commandError are errors of the kubelet and of commands.
	unhealthy, commandError error
	output                  string
	onCommand               func()
}

func newUpdating(t *testing.T) *updating {
	t.Helper()
	u := &updating{machine: newMachine(t), clock: clocktesting.NewFakeClock(time.Now())}
	did := func(what string) func() error {
		return func() error {
			u.done = append(u.done, what)
			return nil
		}
	}
	u.Client, u.Recorder, u.Clock = u.cluster(nil), events.NewFakeRecorder(100), u.clock
	u.RenewCertificate = func(context.Context) error { return did("renew certificate")() }
	u.RebootstrapKubelet = did("rebootstrap kubelet")
	u.SyncTokens = func(context.Context) error { return did("sync tokens")() }
	u.KubeletHealthy = func(context.Context, *corev1.Node) error { return u.unhealthy }
	u.DeletePods = func(_ context.Context, node string) error { return did("delete pods of " + node)() }
	u.Run = func(_ context.Context, command string, args ...string) (string, error) {
		if u.commandError == nil && u.onCommand != nil {
			u.onCommand()
		}
		return u.output, errors.Join(did(fmt.Sprint("run ", append([]string{command}, args...)))(), u.commandError)
	}
	u.write(bootID, "1\n")
	u.write(osRelease, "NAME=x\nPRETTY_NAME=\"Machine Image Version 1.0.0 (local)\"\n")
	u.publish(inPlaceOSC())
	u.mustPass()
	u.done = nil
	return u
}

func (u *updating) mustPass() time.Duration {
	u.t.Helper()
	result, err := u.pass()
	if err != nil {
		u.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (u *updating) node() *corev1.Node {
	u.t.Helper()
	node := &corev1.Node{}
	if err := u.Client.Get(u.t.Context(), client.ObjectKey{Name: u.Hostname}, node); err != nil {
		u.t.Fatal(err)
	}
	return node
}

// reach sets the reason of the Node's condition.
func (u *updating) reach(reason string) {
	u.t.Helper()
	node := u.node()
	node.Status.Conditions = []corev1.NodeCondition{{Type: machinev1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason}}
	if err := u.Client.Status().Update(u.t.Context(), node); err != nil {
		u.t.Fatal(err)
	}
}

func (u *updating) result() string { return u.node().Labels[machinev1alpha1.NodeUpdateResult] }

func (u *updating) reason() string {
	return u.node().Annotations[machinev1alpha1.MachineUpdateFailedReason]
}

func TestNothingIsWrittenBeforeTheNodeIsReady(t *testing.T) {
	u := newUpdating(t)
	u.publish(inPlaceOSC(kubeletVersion("1.36.1")))
	for _, reason := range []string{"", machinev1alpha1.CandidateForUpdate, machinev1alpha1.SelectedForUpdate, machinev1alpha1.DrainSuccessful} {
		if reason != "" {
			u.reach(reason)
		}
		before := u.files()
		u.mustPass()
		if diff := cmp.Diff(before, u.files()); diff != "" || len(u.done) > 0 || u.result() != "" {
			t.Errorf("at %q, files changed, %v was done, and the result is %q:\n%s", reason, u.done, u.result(), diff)
		}
	}
	u.reach(machinev1alpha1.ReadyForUpdate)
	u.mustPass()
	if u.files()["/etc/kubelet-version"] == "" || u.result() != machinev1alpha1.NodeUpdateSuccessful {
		t.Errorf("the files are %v, and the result is %q", u.files(), u.result())
	}
	if diff := cmp.Diff([]string{"delete pods of me"}, u.done); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	u.done = nil
	u.mustPass()
	if len(u.done) > 0 {
		t.Errorf("after the update, %v was done", u.done)
	}
}

// A Node may be lost with a restored etcd, while its pods run.
func TestNothingIsUpdatedInPlaceWithoutANode(t *testing.T) {
	u := newUpdating(t)
	lost := u.node()
	if err := u.Client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	u.publish(inPlaceOSC(kubeletVersion("1.36.1"), systemVersion("2.0.0", "update-os")))
	before := u.files()
	u.mustPass()
	if diff := cmp.Diff(before, u.files()); diff != "" || len(u.done) > 0 {
		t.Errorf("files changed, and %v was done:\n%s", u.done, diff)
	}
	lost.ResourceVersion = ""
	if err := u.Client.Create(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	u.reach(machinev1alpha1.ReadyForUpdate)
	u.onCommand = func() { u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n") }
	u.mustPass()
	if u.files()["/etc/kubelet-version"] == "" || u.result() != machinev1alpha1.NodeUpdateSuccessful {
		t.Errorf("the files are %v, and the result is %q", u.files(), u.result())
	}
}

func TestPatchVersionDoesNotWait(t *testing.T) {
	u := newUpdating(t)
	u.publish(inPlaceOSC(kubeletVersion("1.35.5")))
	u.mustPass()
	if u.files()["/etc/kubelet-version"] == "" || u.result() != "" {
		t.Errorf("the files are %v, and the result is %q", u.files(), u.result())
	}
}

// The machine-controller-manager may have been told to update a Node that has everything already.
func TestNodeWithoutChangesIsUpdated(t *testing.T) {
	u := newUpdating(t)
	u.reach(machinev1alpha1.ReadyForUpdate)
	u.mustPass()
	if u.result() != machinev1alpha1.NodeUpdateSuccessful {
		t.Errorf("the result is %q", u.result())
	}
}

// Without a record of what the machine has, a drained Node is not called updated before everything is done that needs a drained one.
func TestNodeWithoutRecordIsUpdated(t *testing.T) {
	u := newUpdating(t)
	u.remove(nodeagentconfigv1alpha1.LastAppliedOperatingSystemConfigFilePath)
	u.publish(inPlaceOSC(systemVersion("2.0.0", "update-os")))
	u.reach(machinev1alpha1.ReadyForUpdate)
	u.onCommand = func() { u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n") }
	u.mustPass()
	if diff := cmp.Diff([]string{"run [update-os]", "sync tokens", "renew certificate", "rebootstrap kubelet"}, u.done); diff != "" || u.result() != "" {
		t.Errorf("the result is %q; done (-want +got):\n%s", u.result(), diff)
	}
	u.reconciler = &reconciler{Values: u.Values} // the one with the new certificate
	u.mustPass()
	if u.result() != machinev1alpha1.NodeUpdateSuccessful {
		t.Errorf("the result is %q", u.result())
	}
}

func TestUnhealthyKubeletFailsTheUpdate(t *testing.T) {
	u := newUpdating(t)
	u.unhealthy = errors.New("it does not answer")
	u.publish(inPlaceOSC(kubeletVersion("1.36.1")))
	u.reach(machinev1alpha1.ReadyForUpdate)
	if wait := u.mustPass(); wait != checkAgain || u.result() != "" {
		t.Errorf("the delay is %s, and the result %q", wait, u.result())
	}
	u.clock.Step(healthyWithin)
	u.mustPass()
	if want := "The kubelet is not healthy after the update: it does not answer"; u.result() != machinev1alpha1.NodeUpdateFailed || u.reason() != want {
		t.Errorf("the result is %q: %s", u.result(), u.reason())
	}
	u.reach(machinev1alpha1.UpdateFailed)
	u.unhealthy = nil
	u.mustPass()
	if u.result() != machinev1alpha1.NodeUpdateSuccessful || u.reason() != "" {
		t.Errorf("the result is %q: %s", u.result(), u.reason())
	}
}

func TestRotatedCredentials(t *testing.T) {
	u := newUpdating(t)
	at, starts := new(metav1.Now()), u.systemd.Unit("kubelet.service").Starts
	u.publish(inPlaceOSC(rotatedAt(at, at)))
	u.reach(machinev1alpha1.ReadyForUpdate)
	u.mustPass()
	if diff := cmp.Diff([]string{"sync tokens", "renew certificate", "rebootstrap kubelet"}, u.done); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if after := u.systemd.Unit("kubelet.service").Starts; after != starts+1 {
		t.Errorf("the kubelet was started %d times, and %d times before", after, starts)
	}
	if u.result() != "" {
		t.Error("the former process reports, which has the former certificate")
	}
	next := &reconciler{Values: u.Values}
	u.reconciler = next
	u.mustPass()
	if u.result() != machinev1alpha1.NodeUpdateSuccessful {
		t.Errorf("the result is %q", u.result())
	}
}

func TestOperatingSystem(t *testing.T) {
	next := inPlaceOSC(systemVersion("2.0.0", "update-os", "2.0.0"))
	start := func(t *testing.T) *updating {
		u := newUpdating(t)
		u.publish(next)
		u.reach(machinev1alpha1.ReadyForUpdate)
		return u
	}
	t.Run("updated by the command", func(t *testing.T) {
		u := start(t)
		u.onCommand = func() { u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n") }
		u.mustPass()
		if diff := cmp.Diff([]string{"run [update-os 2.0.0]", "delete pods of me"}, u.done); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
		if _, left := u.node().Annotations[nodeagentconfigv1alpha1.AnnotationUpdatingOperatingSystemVersion]; left || u.result() != machinev1alpha1.NodeUpdateSuccessful {
			t.Errorf("the Node has annotations %v, and the result is %q", u.node().Annotations, u.result())
		}
	})
	t.Run("updated by a reboot", func(t *testing.T) {
		u := start(t)
		if _, err := u.pass(); err == nil || u.result() != "" {
			t.Errorf("before the reboot, the result is %q: %v", u.result(), err)
		}
		u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n")
		u.reconciler = &reconciler{Values: u.Values}
		u.mustPass()
		if u.result() != machinev1alpha1.NodeUpdateSuccessful {
			t.Errorf("the result is %q", u.result())
		}
	})
	t.Run("the old system after a reboot", func(t *testing.T) {
		u := start(t)
		if _, err := u.pass(); err == nil {
			t.Error("want an error before the reboot")
		}
		u.write(bootID, "2\n")
		u.reconciler = &reconciler{Values: u.Values}
		for range 2 { // it is not tried again
			if _, err := u.pass(); err == nil {
				t.Error("want an error")
			}
		}
		if want := "the operating system was updated to version 2.0.0, and has version 1.0.0"; u.result() != machinev1alpha1.NodeUpdateFailed || u.reason() != want || len(u.done) != 1 {
			t.Errorf("the result is %q: %s; done: %v", u.result(), u.reason(), u.done)
		}
	})
	t.Run("the agent ends while the command runs", func(t *testing.T) {
		u := start(t)
		u.onCommand = func() { panic("killed") }
		func() {
			defer func() { _ = recover() }()
			_, _ = u.pass()
			t.Fatal("the pass did not reach the point where the agent is to end")
		}()
		u.reconciler = &reconciler{Values: u.Values}
		u.onCommand = func() { u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n") }
		u.mustPass()
		if diff := cmp.Diff([]string{"run [update-os 2.0.0]", "delete pods of me"}, u.done); diff != "" || u.result() != machinev1alpha1.NodeUpdateSuccessful {
			t.Errorf("the result is %q; done (-want +got):\n%s", u.result(), diff)
		}
		if u.Root.Exists(osUpdateFile) {
			t.Error("the update is done, and still recorded as begun")
		}
	})
	t.Run("invalid arguments", func(t *testing.T) {
		u := start(t)
		u.commandError, u.output = errors.New("exit status 2"), "update-os: Invalid argument\n"
		if _, err := u.pass(); err == nil || u.result() != machinev1alpha1.NodeUpdateFailed {
			t.Errorf("the result is %q: %v", u.result(), err)
		}
		for range 2 { // it is not tried again, whether the agent restarts or not
			if _, err := u.pass(); err == nil || len(u.done) != 1 {
				t.Errorf("%v was done: %v", u.done, err)
			}
			u.reconciler = &reconciler{Values: u.Values}
		}
	})
	t.Run("a failure that passes", func(t *testing.T) {
		u := start(t)
		u.commandError = errors.New("exit status 1")
		if _, err := u.pass(); err == nil || u.result() != "" {
			t.Errorf("the result is %q: %v", u.result(), err)
		}
		u.commandError = nil
		u.onCommand = func() { u.write(osRelease, "PRETTY_NAME=\"Machine Image Version 2.0.0\"\n") }
		u.mustPass()
		if u.result() != machinev1alpha1.NodeUpdateSuccessful {
			t.Errorf("the result is %q", u.result())
		}
	})
}
