package care

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// healthy is a control plane of a workerless shoot in which all is well.
func healthy() *observation {
	seen := &observation{}
	for _, name := range []string{"gardener-resource-manager", "kube-apiserver", "kube-controller-manager"} {
		seen.deployments = append(seen.deployments, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
		})
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		seen.etcds = append(seen.etcds, druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: druidv1alpha1.EtcdStatus{Ready: new(true)}})
	}
	return seen
}

// rollingOut is a ManagedResource that is healthy, and has been rolled out for a while.
func rollingOut(since time.Duration) []resourcesv1alpha1.ManagedResource {
	condition := func(typ corev1beta1.ConditionType) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	return []resourcesv1alpha1.ManagedResource{{Status: resourcesv1alpha1.ManagedResourceStatus{Conditions: []corev1beta1.Condition{
		condition(resourcesv1alpha1.ResourcesApplied), condition(resourcesv1alpha1.ResourcesHealthy), condition(resourcesv1alpha1.ResourcesProgressing),
	}}}}
}

func TestJudge(t *testing.T) {
	const (
		yes, no, unknown = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown
		api, plane       = corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy
		watch, system    = corev1beta1.ShootObservabilityComponentsHealthy, corev1beta1.ShootSystemComponentsHealthy
		nodes            = corev1beta1.ShootEveryNodeReady
	)
	type statuses map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *observation)
		want   statuses
	}{
		"all is well":   {change: func(*corev1beta1.Shoot, *observation) {}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"no API server": {change: func(_ *corev1beta1.Shoot, o *observation) { o.unavailable = errors.New("x") }, want: statuses{api: no, plane: yes, watch: yes, system: unknown}},
		"no etcd":       {change: func(_ *corev1beta1.Shoot, o *observation) { o.etcds = o.etcds[:1] }, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"a pod is gone": {change: func(_ *corev1beta1.Shoot, o *observation) { o.deployments[1].Status.AvailableReplicas = 0 }, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"an extension": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.reports = []report{{condition: corev1beta1.Condition{Type: system, Status: no}}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: no}},
		"no node, no scheduler": {change: func(s *corev1beta1.Shoot, _ *observation) {
			s.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}}
		}, want: statuses{api: yes, plane: no, watch: yes, system: yes, nodes: no}},
		"nobody tells of nodes": {change: func(s *corev1beta1.Shoot, o *observation) {
			s.Spec.Provider.Workers, o.unavailable = []corev1beta1.Worker{{Name: "a"}}, errors.New("x")
		}, want: statuses{api: no, plane: no, watch: yes, system: unknown, nodes: unknown}},
		"no API server, and an extension knows that something is wrong": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.unavailable, o.reports = errors.New("x"), []report{{condition: corev1beta1.Condition{Type: system, Status: no}}}
		}, want: statuses{api: no, plane: yes, watch: yes, system: no}},
		"extensions that do not know": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.reports = []report{{condition: corev1beta1.Condition{Type: system, Status: unknown}}, {condition: corev1beta1.Condition{Type: plane, Status: corev1beta1.ConditionProgressing}}}
		}, want: statuses{api: yes, plane: corev1beta1.ConditionProgressing, watch: yes, system: unknown}},
		"an extension that does not live": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.reports = []report{{condition: corev1beta1.Condition{Type: system, Status: yes}, heartbeat: new(now.Add(-6 * time.Minute))}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: unknown}},
		"an extension that lives": {change: func(_ *corev1beta1.Shoot, o *observation) {
			o.reports = []report{{condition: corev1beta1.Condition{Type: system, Status: yes}, heartbeat: new(now.Add(-4 * time.Minute))}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"something is rolled out": {change: func(_ *corev1beta1.Shoot, o *observation) { o.resources = rollingOut(time.Minute) }, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"something is rolled out for too long": {
			change: func(_ *corev1beta1.Shoot, o *observation) { o.resources = rollingOut(time.Hour) }, want: statuses{api: yes, plane: yes, watch: yes, system: no},
		},
		"etcd is rolled out":              {change: func(_ *corev1beta1.Shoot, o *observation) { o.etcds[0].Status.Conditions = notUpdated(time.Minute) }, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"etcd is rolled out for too long": {change: func(_ *corev1beta1.Shoot, o *observation) { o.etcds[0].Status.Conditions = notUpdated(time.Hour) }, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"no tunnel": {change: func(s *corev1beta1.Shoot, o *observation) {
			s.Spec.Provider.Workers, o.unreachable = []corev1beta1.Worker{{Name: "a"}}, errors.New("x")
		}, want: statuses{api: yes, plane: no, watch: yes, system: no, nodes: no}},
		"asleep": {change: func(s *corev1beta1.Shoot, o *observation) {
			s.Spec.Hibernation, s.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
			o.deployments = nil
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, seen := &corev1beta1.Shoot{}, healthy()
			tc.change(shoot, seen)
			got := statuses{}
			for _, condition := range judge(shoot, seen, limits{silence: 5 * time.Minute, progressing: 30 * time.Minute}, now) {
				got[condition.Type] = condition.Status
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
		})
	}
}

// notUpdated is what is said of an etcd whose members are being replaced.
func notUpdated(since time.Duration) []druidv1alpha1.Condition {
	return []druidv1alpha1.Condition{{
		Type: druidv1alpha1.ConditionTypeAllMembersUpdated, Status: druidv1alpha1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}
}

func TestTolerate(t *testing.T) {
	bad := corev1beta1.Condition{Status: corev1beta1.ConditionFalse}
	before := func(status corev1beta1.ConditionStatus, age time.Duration) *corev1beta1.Condition {
		return &corev1beta1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	for name, tc := range map[string]struct {
		before *corev1beta1.Condition
		want   corev1beta1.ConditionStatus
	}{
		"never well":  {want: corev1beta1.ConditionFalse},
		"just now":    {before: before(corev1beta1.ConditionTrue, time.Hour), want: corev1beta1.ConditionProgressing},
		"for a while": {before: before(corev1beta1.ConditionProgressing, 30*time.Second), want: corev1beta1.ConditionProgressing},
		"too long":    {before: before(corev1beta1.ConditionProgressing, 2*time.Minute), want: corev1beta1.ConditionFalse},
		"long since":  {before: before(corev1beta1.ConditionFalse, time.Second), want: corev1beta1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tolerate(tc.before, bad, time.Minute, now); got.Status != tc.want {
				t.Errorf("tolerate() is %s, want %s", got.Status, tc.want)
			}
		})
	}
}

func TestStale(t *testing.T) {
	deleted := func(age time.Duration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(now.Add(-age)))}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"running": {pod: &corev1.Pod{}},
		"evicted": {pod: &corev1.Pod{Status: corev1.PodStatus{Reason: "Evicted"}}, want: true},
		"no room": {pod: &corev1.Pod{Status: corev1.PodStatus{Reason: "OutOfCpu"}}, want: true},
		"ending":  {pod: deleted(time.Minute)},
		"stuck":   {pod: deleted(10 * time.Minute), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stale(tc.pod, now); got != tc.want {
				t.Errorf("stale() is %t", got)
			}
		})
	}
}

// A cluster that is being made is not ill because of what it does not have yet.
func TestPardon(t *testing.T) {
	type status = corev1beta1.ShootStatus
	last := func(operation corev1beta1.LastOperationType, state corev1beta1.LastOperationState) status {
		return status{LastOperation: &corev1beta1.LastOperation{Type: operation, State: state}}
	}
	failing := last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing)
	failing.LastErrors = []corev1beta1.LastError{{Description: "x"}}
	const no, progressing = corev1beta1.ConditionFalse, corev1beta1.ConditionProgressing
	for name, tc := range map[string]struct {
		status status
		have   corev1beta1.ConditionStatus
		want   corev1beta1.ConditionStatus
	}{
		"nothing is known":          {have: no, want: no},
		"it is made":                {last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing), no, progressing},
		"it is made, and is well":   {last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing), corev1beta1.ConditionTrue, corev1beta1.ConditionTrue},
		"it is made, with errors":   {failing, no, no},
		"it could not be made":      {last(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError), no, no},
		"it is restored":            {last(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateProcessing), no, progressing},
		"it is there, and changing": {last(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateProcessing), no, no},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pardon(&corev1beta1.Shoot{Status: tc.status}, corev1beta1.Condition{Status: tc.have}); got.Status != tc.want {
				t.Errorf("pardon() is %s, want %s", got.Status, tc.want)
			}
		})
	}
}
