package care

import (
	"errors"
	"slices"
	"strings"
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

// healthyControlPlane is that of a workerless shoot.
func healthyControlPlane() *observed {
	o := &observed{}
	for _, name := range []string{"gardener-resource-manager", "kube-apiserver", "kube-controller-manager"} {
		o.deployments = append(o.deployments, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			},
		})
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		o.etcds = append(o.etcds, druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: druidv1alpha1.EtcdStatus{Ready: new(true)}})
	}
	return o
}

// rollingOut is a healthy ManagedResource that is progressing since a while ago.
func rollingOut(since time.Duration) []resourcesv1alpha1.ManagedResource {
	condition := func(typ corev1beta1.ConditionType) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	return []resourcesv1alpha1.ManagedResource{{Status: resourcesv1alpha1.ManagedResourceStatus{Conditions: []corev1beta1.Condition{
		condition(resourcesv1alpha1.ResourcesApplied), condition(resourcesv1alpha1.ResourcesHealthy), condition(resourcesv1alpha1.ResourcesProgressing),
	}}}}
}

func TestDecide(t *testing.T) {
	const (
		yes, no, unknown = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown
		api, plane       = corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy
		watch, system    = corev1beta1.ShootObservabilityComponentsHealthy, corev1beta1.ShootSystemComponentsHealthy
		nodes            = corev1beta1.ShootEveryNodeReady
	)
	type statuses map[corev1beta1.ConditionType]corev1beta1.ConditionStatus
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot, *observed)
		want   statuses
	}{
		"no problem":             {change: func(*corev1beta1.Shoot, *observed) {}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"the API server is down": {change: func(_ *corev1beta1.Shoot, o *observed) { o.apiServerError = errors.New("x") }, want: statuses{api: no, plane: yes, watch: yes, system: unknown}},
		"no etcd":                {change: func(_ *corev1beta1.Shoot, o *observed) { o.etcds = o.etcds[:1] }, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"a pod is not available": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.deployments[1].Status.AvailableReplicas, o.deployments[1].Status.Conditions[0].Status = 0, corev1.ConditionFalse
		}, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"kube-apiserver is rolled out, and serves": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.deployments[1].Status.Replicas, o.deployments[1].Status.UpdatedReplicas = 2, 1
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"the rollout of kube-apiserver hangs": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.deployments[1].Status.Replicas, o.deployments[1].Status.Conditions = 2, append(o.deployments[1].Status.Conditions,
				appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"})
		}, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"a change of kube-apiserver is not observed yet": {
			change: func(_ *corev1beta1.Shoot, o *observed) { o.deployments[1].Generation = 1 }, want: statuses{api: yes, plane: yes, watch: yes, system: yes},
		},
		"a dashboard is rolled out": {change: func(_ *corev1beta1.Shoot, o *observed) {
			d := *o.deployments[0].DeepCopy()
			d.Labels, d.Status.Replicas = map[string]string{"gardener.cloud/role": "monitoring"}, 2
			o.deployments = append(o.deployments, d)
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"a dashboard is not available": {change: func(_ *corev1beta1.Shoot, o *observed) {
			d := *o.deployments[0].DeepCopy()
			d.Labels, d.Status.Conditions = map[string]string{"gardener.cloud/role": "monitoring"}, nil
			o.deployments = append(o.deployments, d)
		}, want: statuses{api: yes, plane: yes, watch: no, system: yes}},
		"controllers are scaled down": {change: func(_ *corev1beta1.Shoot, o *observed) {
			for i := range o.deployments {
				o.deployments[i].Annotations = map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}
			}
		}, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"an extension condition is False": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.extensionConditions = []extensionCondition{{condition: corev1beta1.Condition{Type: system, Status: no}}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: no}},
		"no node, no scheduler": {change: func(s *corev1beta1.Shoot, _ *observed) {
			s.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}}
		}, want: statuses{api: yes, plane: no, watch: yes, system: yes, nodes: no}},
		"nodes are unknown": {change: func(s *corev1beta1.Shoot, o *observed) {
			s.Spec.Provider.Workers, o.apiServerError = []corev1beta1.Worker{{Name: "a"}}, errors.New("x")
		}, want: statuses{api: no, plane: no, watch: yes, system: unknown, nodes: unknown}},
		"the API server is down, and an extension condition is False": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.apiServerError, o.extensionConditions = errors.New("x"), []extensionCondition{{condition: corev1beta1.Condition{Type: system, Status: no}}}
		}, want: statuses{api: no, plane: yes, watch: yes, system: no}},
		"extension conditions are Unknown and Progressing": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.extensionConditions = []extensionCondition{{condition: corev1beta1.Condition{Type: system, Status: unknown}}, {condition: corev1beta1.Condition{Type: plane, Status: corev1beta1.ConditionProgressing}}}
		}, want: statuses{api: yes, plane: corev1beta1.ConditionProgressing, watch: yes, system: unknown}},
		"a stale heartbeat": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.extensionConditions = []extensionCondition{{condition: corev1beta1.Condition{Type: system, Status: yes}, heartbeat: new(now.Add(-6 * time.Minute))}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: unknown}},
		"a fresh heartbeat": {change: func(_ *corev1beta1.Shoot, o *observed) {
			o.extensionConditions = []extensionCondition{{condition: corev1beta1.Condition{Type: system, Status: yes}, heartbeat: new(now.Add(-4 * time.Minute))}}
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"a ManagedResource is rolled out": {change: func(_ *corev1beta1.Shoot, o *observed) { o.managedResources = rollingOut(time.Minute) }, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"a ManagedResource is rolled out for too long": {
			change: func(_ *corev1beta1.Shoot, o *observed) { o.managedResources = rollingOut(time.Hour) }, want: statuses{api: yes, plane: yes, watch: yes, system: no},
		},
		"etcd is rolled out":              {change: func(_ *corev1beta1.Shoot, o *observed) { o.etcds[0].Status.Conditions = notUpdated(time.Minute) }, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
		"etcd is rolled out for too long": {change: func(_ *corev1beta1.Shoot, o *observed) { o.etcds[0].Status.Conditions = notUpdated(time.Hour) }, want: statuses{api: yes, plane: no, watch: yes, system: yes}},
		"no tunnel": {change: func(s *corev1beta1.Shoot, o *observed) {
			s.Spec.Provider.Workers, o.tunnelError = []corev1beta1.Worker{{Name: "a"}}, errors.New("x")
		}, want: statuses{api: yes, plane: no, watch: yes, system: no, nodes: no}},
		"hibernated": {change: func(s *corev1beta1.Shoot, o *observed) {
			s.Spec.Hibernation, s.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
			o.deployments = nil
		}, want: statuses{api: yes, plane: yes, watch: yes, system: yes}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot, o := &corev1beta1.Shoot{}, healthyControlPlane()
			tc.change(shoot, o)
			got := statuses{}
			for _, condition := range decide(shoot, o, thresholds{staleHeartbeat: 5 * time.Minute, progressing: 30 * time.Minute}, now) {
				got[condition.Type] = condition.Status
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

// The owner of a shoot learns why controllers do not run.
func TestControllersScaledDown(t *testing.T) {
	o := healthyControlPlane()
	for i := range o.deployments {
		o.deployments[i].Annotations = map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}
	}
	for _, condition := range decide(&corev1beta1.Shoot{}, o, thresholds{}, now) {
		if condition.Type == corev1beta1.ShootControlPlaneHealthy && (condition.Reason != "ControllersScaledDown" || !strings.HasSuffix(condition.Message, ": kube-controller-manager.")) {
			t.Errorf("condition is %v", condition)
		}
	}
}

// notUpdated are the conditions of an Etcd that is being rolled out.
func notUpdated(since time.Duration) []druidv1alpha1.Condition {
	return []druidv1alpha1.Condition{{
		Type: druidv1alpha1.ConditionTypeAllMembersUpdated, Status: druidv1alpha1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}
}

func TestWithThreshold(t *testing.T) {
	unhealthy := corev1beta1.Condition{Status: corev1beta1.ConditionFalse}
	before := func(status corev1beta1.ConditionStatus, age time.Duration) *corev1beta1.Condition {
		return &corev1beta1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	for name, tc := range map[string]struct {
		before *corev1beta1.Condition
		want   corev1beta1.ConditionStatus
	}{
		"never True":  {want: corev1beta1.ConditionFalse},
		"just now":    {before: before(corev1beta1.ConditionTrue, time.Hour), want: corev1beta1.ConditionProgressing},
		"for a while": {before: before(corev1beta1.ConditionProgressing, 30*time.Second), want: corev1beta1.ConditionProgressing},
		"too long":    {before: before(corev1beta1.ConditionProgressing, 2*time.Minute), want: corev1beta1.ConditionFalse},
		"long since":  {before: before(corev1beta1.ConditionFalse, time.Second), want: corev1beta1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withThreshold(tc.before, unhealthy, time.Minute, now); got.Status != tc.want {
				t.Errorf("withThreshold() is %s, want %s", got.Status, tc.want)
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
		"running":                 {pod: &corev1.Pod{}},
		"evicted":                 {pod: &corev1.Pod{Status: corev1.PodStatus{Reason: "Evicted"}}, want: true},
		"rejected by the kubelet": {pod: &corev1.Pod{Status: corev1.PodStatus{Reason: "OutOfCpu"}}, want: true},
		"terminating":             {pod: deleted(time.Minute)},
		"stuck":                   {pod: deleted(10 * time.Minute), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stale(tc.pod, now); got != tc.want {
				t.Errorf("stale() is %t", got)
			}
		})
	}
}

// While a control plane is started or stopped, what does not run is Progressing.
func TestDuringOperation(t *testing.T) {
	const (
		no, unknown, progressing    = corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown, corev1beta1.ConditionProgressing
		create, restore             = corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeRestore
		migrate, reconcile          = corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeReconcile
		processing, pending         = corev1beta1.LastOperationStateProcessing, corev1beta1.LastOperationStatePending
		succeeded, retried          = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateError
		reasonDown, reasonUnhealthy = reasonAPIServerDown, "ControlPlaneUnhealthy"
	)
	hibernates := func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }
	wakesUp := func(s *corev1beta1.Shoot) { s.Status.Hibernated = true }
	for name, tc := range map[string]struct {
		operation corev1beta1.LastOperationType
		state     corev1beta1.LastOperationState
		change    func(*corev1beta1.Shoot)
		want      corev1beta1.ConditionStatus
	}{
		"no operation":                    {want: no},
		"creation":                        {operation: create, state: processing, want: progressing},
		"creation that waits":             {operation: create, state: pending, want: progressing},
		"creation failed":                 {operation: create, state: retried, want: no},
		"restoration":                     {operation: restore, state: processing, want: progressing},
		"reconciliation":                  {operation: reconcile, state: processing, want: no},
		"migration":                       {operation: migrate, state: processing, want: progressing},
		"migration that waits":            {operation: migrate, state: pending, want: no},
		"migrated":                        {operation: migrate, state: succeeded, want: progressing},
		"hibernating":                     {operation: reconcile, state: processing, change: hibernates, want: progressing},
		"to be hibernated":                {operation: reconcile, state: pending, change: hibernates, want: no},
		"waking up":                       {operation: reconcile, state: processing, change: wakesUp, want: progressing},
		"the wake-up failed":              {operation: reconcile, state: retried, change: wakesUp, want: no},
		"reconciliation while hibernated": {operation: reconcile, state: processing, change: func(s *corev1beta1.Shoot) { hibernates(s); wakesUp(s) }, want: no},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			if tc.operation != "" {
				shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: tc.operation, State: tc.state}
			}
			if tc.change != nil {
				tc.change(shoot)
			}
			expect := func(what string, condition corev1beta1.Condition, want corev1beta1.ConditionStatus) {
				t.Helper()
				if got := duringOperation(shoot, condition); got.Status != want {
					t.Errorf("%s: duringOperation() is %s, want %s", what, got.Status, want)
				}
			}
			down := tc.want
			if down == no {
				down = unknown
			}
			expect("unhealthy", corev1beta1.Condition{Status: no, Reason: reasonUnhealthy}, tc.want)
			expect("the API server is down", corev1beta1.Condition{Status: unknown, Reason: reasonDown}, down)
			expect("healthy", corev1beta1.Condition{Status: corev1beta1.ConditionTrue}, corev1beta1.ConditionTrue)
			expect("an outdated report", corev1beta1.Condition{Status: unknown, Reason: "OutdatedHealthCheckReport"}, unknown)
			shoot.Status.LastErrors = []corev1beta1.LastError{{Description: "x"}}
			expect("with errors", corev1beta1.Condition{Status: no, Reason: reasonUnhealthy}, no)
		})
	}
}

// A shoot is hibernated until the operation that wakes it up begins, which may have to wait.
func TestHibernated(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, hibernated, observed bool
		state                        corev1beta1.LastOperationState
		want                         bool
	}{
		"hibernated":                   {wanted: true, hibernated: true, observed: true, state: corev1beta1.LastOperationStateSucceeded, want: true},
		"hibernated, and reconciled":   {wanted: true, hibernated: true, observed: true, state: corev1beta1.LastOperationStateProcessing, want: true},
		"hibernating":                  {wanted: true, observed: true, state: corev1beta1.LastOperationStateProcessing},
		"to wake up":                   {hibernated: true, state: corev1beta1.LastOperationStateSucceeded, want: true},
		"to wake up, but it waits":     {hibernated: true, state: corev1beta1.LastOperationStatePending, want: true},
		"waking up":                    {hibernated: true, observed: true, state: corev1beta1.LastOperationStateProcessing},
		"waking up, and changed again": {hibernated: true, state: corev1beta1.LastOperationStateProcessing},
		"the wake-up failed":           {hibernated: true, observed: true, state: corev1beta1.LastOperationStateError},
		"running, and changed":         {state: corev1beta1.LastOperationStateSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: &tc.wanted}
			shoot.Status.Hibernated, shoot.Status.LastOperation = tc.hibernated, &corev1beta1.LastOperation{State: tc.state}
			if tc.observed {
				shoot.Status.ObservedGeneration = 2
			}
			if got := hibernated(shoot); got != tc.want {
				t.Errorf("hibernated() is %t", got)
			}
		})
	}
}

func TestRequiredDeployments(t *testing.T) {
	always := []string{"gardener-resource-manager", "kube-apiserver", "kube-controller-manager"}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		more   []string
	}{
		"without nodes":                            {change: func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil }},
		"pools of a fixed size":                    {change: func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Minimum = 3 }, more: []string{"kube-scheduler", "machine-controller-manager"}},
		"an elastic pool":                          {change: func(*corev1beta1.Shoot) {}, more: []string{"kube-scheduler", "machine-controller-manager", "cluster-autoscaler"}},
		"an elastic pool that is not deployed yet": {change: func(s *corev1beta1.Shoot) { s.Generation++ }, more: []string{"kube-scheduler", "machine-controller-manager"}},
		"a Vertical Pod Autoscaler": {change: func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].Minimum, s.Spec.Kubernetes.VerticalPodAutoscaler = 3, &corev1beta1.VerticalPodAutoscaler{Enabled: true}
		}, more: []string{"kube-scheduler", "machine-controller-manager", "vpa-admission-controller", "vpa-recommender", "vpa-updater"}},
		"a shoot that is being deleted": {change: func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: now} }, more: []string{"kube-scheduler"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", Minimum: 1, Maximum: 3}}
			tc.change(shoot)
			if diff := cmp.Diff(append(slices.Clone(always), tc.more...), requiredDeployments(shoot)); diff != "" {
				t.Errorf("requiredDeployments() (-want +got):\n%s", diff)
			}
		})
	}
}
