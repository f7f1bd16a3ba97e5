package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
)

func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		done       []string
		want       []string
	}{
		"none":                          {},
		"all are done":                  {annotation: "deployInfrastructure,restartCoreAddons", done: []string{"deployInfrastructure", "restartCoreAddons"}},
		"one was added later":           {annotation: "deployInfrastructure, restartCoreAddons", done: []string{"deployInfrastructure"}, want: []string{"restartCoreAddons"}},
		"one is for another controller": {annotation: "deployInfrastructure,custom", done: []string{"deployInfrastructure", "custom"}, want: []string{"custom"}},
		"nothing between them":          {annotation: ",,", done: []string{"custom"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Annotations = map[string]string{constants.ShootTasks: tc.annotation}
			got := remainingTasks(requestedTasks(shoot), tc.done)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("remainingTasks() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	now, later := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	shoot := &corev1beta1.Shoot{}
	step := func(operation string, at metav1.Time, want corev1beta1.CARotation) {
		t.Helper()
		shoot.Annotations = map[string]string{constants.GardenerOperation: operation}
		if _, others := beginOperations(shoot, at); len(others) > 0 {
			t.Errorf("%q have not begun", others)
		}
		if diff := cmp.Diff(&want, shoot.Status.Credentials.Rotation.CertificateAuthorities); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", operation, diff)
		}
	}
	step("rotate-ca-start", now, corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: &now})
	step("rotate-ca-start", later, corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: &now})
	step("rotate-ca-complete", later, corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing, LastInitiationTime: &now})
	finishRotations(shoot, later)
	step("rotate-ca-complete", later, corev1beta1.CARotation{
		Phase: corev1beta1.RotationCompleting, LastInitiationTime: &now, LastInitiationFinishedTime: &later, LastCompletionTriggeredTime: &later,
	})
	finishRotations(shoot, later)
	if got := shoot.Status.Credentials.Rotation.CertificateAuthorities; got.Phase != corev1beta1.RotationCompleted || !got.LastCompletionTime.Equal(&later) {
		t.Errorf("it ends as %+v", got)
	}
}

func TestRotationWithoutRollout(t *testing.T) {
	now := metav1.NewTime(noon)
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}, {Name: "b"}}
	shoot.Annotations = map[string]string{constants.GardenerOperation: "rotate-ca-start-without-workers-rollout;maintain"}
	if _, others := beginOperations(shoot, now); !slices.Equal(others, []string{"maintain"}) {
		t.Errorf("%q have not begun", others)
	}
	before := shoot.Status.Credentials.DeepCopy()
	if beginOperations(shoot, metav1.NewTime(noon.Add(time.Hour))); !cmp.Equal(before, shoot.Status.Credentials) { // a run that was interrupted begins again
		t.Errorf("beginOperations() once more (-first +second):\n%s", cmp.Diff(before, shoot.Status.Credentials))
	}
	if r := observed.PoolRotation(shoot, "a"); r.CertificateAuthorities != nil {
		t.Errorf("the machines of a pool that waits are replaced: %+v", r)
	}
	finishRotations(shoot, now)
	ca := func() *corev1beta1.CARotation { return shoot.Status.Credentials.Rotation.CertificateAuthorities }
	if ca().Phase != corev1beta1.RotationWaitingForWorkersRollout || len(ca().PendingWorkersRollouts) != 2 {
		t.Errorf("rotation is %+v", ca())
	}
	for i, pools := range []string{"a", "*"} {
		if r := observed.PoolRotation(shoot, "a"); i > 0 && !r.CertificateAuthorities.Equal(&now) {
			t.Errorf("the machines of a pool that is rolled out stay: %+v", r)
		}
		if r := observed.PoolRotation(shoot, "b"); r.CertificateAuthorities != nil {
			t.Errorf("the machines of a pool that waits are replaced: %+v", r)
		}
		shoot.Annotations[constants.GardenerOperation] = "rotate-rollout-workers=" + pools
		beginOperations(shoot, now)
		finishRotations(shoot, now)
	}
	if ca().Phase != corev1beta1.RotationPrepared {
		t.Errorf("rotation is %+v", ca())
	}
}

// Machines can be replaced pool by pool without any other reason.
func TestRollOut(t *testing.T) {
	first, second := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	ask := func(pools string, at metav1.Time) {
		t.Helper()
		shoot.Annotations = map[string]string{constants.GardenerOperation: "rollout-workers=" + pools}
		if _, others := beginOperations(shoot, at); len(others) > 0 {
			t.Errorf("%q have not begun", others)
		}
	}
	ask("a,b", first)
	ask("b,unknown", second)
	shoot.Spec.Provider.Workers = shoot.Spec.Provider.Workers[1:] // "a" goes
	finishRotations(shoot, second)
	for pool, want := range map[string]*metav1.Time{"a": &first, "b": &second, "c": nil} {
		if got := observed.PoolRotation(shoot, pool).Rollout; !got.Equal(want) {
			t.Errorf("pool %q has the machines of %s, want those of %s", pool, got, want)
		}
	}
	ask("*", second)
	if list := shoot.Status.ManualWorkerPoolRollout.PendingWorkersRollouts; len(list) != 2 {
		t.Errorf("recorded are %+v", list)
	}
}

// A second rotation does not replace machines of pools whose rollout is pending, and does not wait for pools that do not exist any more.
func TestPendingPools(t *testing.T) {
	first, second := metav1.NewTime(noon), metav1.NewTime(noon.Add(time.Hour))
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}}
	for _, operation := range []string{"rotate-ca-start", "rotate-ca-complete"} {
		shoot.Annotations = map[string]string{constants.GardenerOperation: operation}
		beginOperations(shoot, first)
		finishRotations(shoot, first)
	}
	shoot.Annotations = map[string]string{constants.GardenerOperation: "rotate-ca-start-without-workers-rollout"}
	beginOperations(shoot, second)
	if r := observed.PoolRotation(shoot, "a"); !r.CertificateAuthorities.Equal(&first) {
		t.Errorf("the machines are those of %s", r.CertificateAuthorities)
	}
	if r := observed.PoolRotation(shoot, "new"); !r.CertificateAuthorities.Equal(&second) {
		t.Errorf("new machines are those of %s", r.CertificateAuthorities)
	}
	shoot.Spec.Provider.Workers[0].Name = "other"
	finishRotations(shoot, second)
	if ca := shoot.Status.Credentials.Rotation.CertificateAuthorities; ca.Phase != corev1beta1.RotationPrepared {
		t.Errorf("rotation is %+v", ca)
	}
}

func TestNothingToRotate(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	if beginOperations(shoot, metav1.Now()); shoot.Status.Credentials != nil {
		t.Errorf("credentials are %+v", shoot.Status.Credentials)
	}
}

// Each task of the annotation requests what it names, and nothing else.
func TestRequestedTasks(t *testing.T) {
	for tasks, want := range map[string][3]bool{
		"":                        {},
		"restartCoreAddons":       {},
		"deployInfrastructure":    {true, false, false},
		"deployDNSRecordInternal": {false, true, false},
		"deployDNSRecordExternal": {false, false, true},
		"deployDNSRecordIngress":  {},
		"x, deployInfrastructure": {true, false, false},
		"deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal": {true, true, true},
	} {
		o := observedtest.State()
		o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/tasks": tasks}
		s := newLandscape(t).stages(o, kindRunning)
		if got := [3]bool{s.infrastructure.Requested, s.dns.InternalRequested, s.dns.ExternalRequested}; got != want {
			t.Errorf("%q requests Infrastructure, internal and external DNSRecord: %v, want %v", tasks, got, want)
		}
	}
}

// The flow lasts longer than the longest delay of node agents, and the pass longer than the flow.
func TestFlowLastsLongerThanTheDelayOfNodeAgents(t *testing.T) {
	o := observedtest.State()
	o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/cloud-config-execution-max-delay-seconds": "1800"}
	if got := newLandscape(t).stages(o, kindRunning).nodes.NodeAgentDelay; got != 30*time.Minute {
		t.Errorf("the stage of nodes has the delay %s", got)
	}
	if got := timeoutOf(o.Shoot); got != time.Hour || got >= passTimeout {
		t.Errorf("a flow has %s, and a pass %s", got, passTimeout)
	}
}

// DNSRecords have the IP families of the spec. A shoot without worker pools may have no networking.
func TestIPFamiliesOfDNSRecords(t *testing.T) {
	families := []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv6}
	for _, networking := range []*corev1beta1.Networking{nil, {IPFamilies: families}} {
		o := observedtest.State()
		o.Shoot.Spec.Networking = networking
		if got := newLandscape(t).stages(o, kindRunning).dns.IPFamilies; slices.Equal(got, families) != (networking != nil) {
			t.Errorf("DNSRecords have the families %v with %v", got, networking)
		}
	}
}

// A rotation is prepared when no node has the former credentials any more.
func TestRotationWaitsForManualUpdates(t *testing.T) {
	for _, phase := range []corev1beta1.CredentialsRotationPhase{corev1beta1.RotationPreparing, corev1beta1.RotationWaitingForWorkersRollout} {
		shoot := &corev1beta1.Shoot{}
		shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{Phase: phase}, ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: phase},
		}}
		shoot.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"a"}}}
		rotation := shoot.Status.Credentials.Rotation
		finishRotations(shoot, metav1.Now())
		if ca, key := rotation.CertificateAuthorities.Phase, rotation.ServiceAccountKey.Phase; ca != phase || key != phase {
			t.Errorf("after %s, while updates are pending, the phases are %s and %s", phase, ca, key)
		}
		shoot.Status.InPlaceUpdates = nil
		finishRotations(shoot, metav1.Now())
		if ca, key := rotation.CertificateAuthorities.Phase, rotation.ServiceAccountKey.Phase; ca != corev1beta1.RotationPrepared || key != corev1beta1.RotationPrepared {
			t.Errorf("after %s, when all nodes are updated, the phases are %s and %s", phase, ca, key)
		}
	}
}
