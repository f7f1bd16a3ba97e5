package care

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/managedresource"
	"gardener.cloud/gardener/internal/kube"
)

// stuckAfter is how long a pod may take to end.
const stuckAfter = 5 * time.Minute

// observation is what was seen of a control plane.
type observation struct {
	deployments  []appsv1.Deployment
	statefulSets []appsv1.StatefulSet
	etcds        []druidv1alpha1.Etcd
	resources    []resourcesv1alpha1.ManagedResource
	credentials  []metav1.PartialObjectMetadata
	reports      []report
	// unavailable is why the API server did not say that it is well. Without that, there is an access, and what follows was read by it.
	unavailable error
	access      Access
	nodesSeen
	nodesUnknown error
	// unreachable is why the API server does not get through to nodes.
	unreachable     error
	mutating        []admissionregistrationv1.MutatingWebhookConfiguration
	validating      []admissionregistrationv1.ValidatingWebhookConfiguration
	webhooksUnknown error
	// conversions are the names of kinds of users whose objects are stored in several versions, and are converted by a webhook. It is nil as
	// long as nobody knows.
	conversions []string
}

// report is what one extension says about one condition.
type report struct {
	kind, typ, name string
	condition       corev1beta1.Condition
	// heartbeat is when the extension has last said that it lives. It is nil if nobody expects it to.
	heartbeat *time.Time
}

// limits are for how long something may go on until it counts as a problem. Zero is forever.
type limits struct {
	// silence is for extensions that do not say that they live.
	silence time.Duration
	// progressing is for ManagedResources that are being rolled out.
	progressing time.Duration
}

func limitsOf(c gardenletconfigv1alpha1.ShootCareControllerConfiguration) limits {
	l := limits{}
	if s := c.StaleExtensionHealthChecks; s != nil && s.Enabled && s.Threshold != nil {
		l.silence = s.Threshold.Duration
	}
	if t := c.ManagedResourceProgressingThreshold; t != nil {
		l.progressing = t.Duration
	}
	return l
}

func (o *observation) addExtensions(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if e, ok := item.(extensionsv1alpha1.Object); ok {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", e), "*v1alpha1.") // those from a cache do not say it
			for _, condition := range e.GetExtensionStatus().GetConditions() {
				o.reports = append(o.reports, report{kind: kind, typ: e.GetExtensionSpec().GetExtensionType(), name: e.GetName(), condition: condition})
			}
		}
		return nil
	})
}

func hibernated(shoot *corev1beta1.Shoot) bool {
	h := shoot.Spec.Hibernation
	return h != nil && h.Enabled != nil && *h.Enabled && shoot.Status.Hibernated
}

// required are the Deployments without which a control plane is none.
func required(shoot *corev1beta1.Shoot) []string {
	names := []string{"gardener-resource-manager", "kube-apiserver", "kube-controller-manager"}
	if len(shoot.Spec.Provider.Workers) > 0 {
		names = append(names, "kube-scheduler")
	}
	return names
}

// finding is something that keeps a condition from being fulfilled.
type finding struct {
	// status is what the condition has because of it.
	status  corev1beta1.ConditionStatus
	message string
	codes   []corev1beta1.ErrorCode
}

// findings are those of all conditions.
type findings map[corev1beta1.ConditionType][]finding

func (f findings) add(typ corev1beta1.ConditionType, err error) {
	if err != nil {
		f[typ] = append(f[typ], finding{status: corev1beta1.ConditionFalse, message: err.Error()})
	}
}

// judge returns the conditions of a shoot.
func judge(shoot *corev1beta1.Shoot, seen *observation, l limits, now time.Time) []corev1beta1.Condition {
	if hibernated(shoot) {
		var list []corev1beta1.Condition
		for _, typ := range conditionTypes(shoot) {
			list = append(list, corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: asleep})
		}
		return list
	}
	f := findings{}
	f.add(corev1beta1.ShootAPIServerAvailable, seen.unavailable)
	judgeControlPlane(shoot, seen, f.add)
	for i := range seen.etcds {
		f.add(corev1beta1.ShootControlPlaneHealthy, judgeRollout(&seen.etcds[i], now))
	}
	for i := range seen.resources {
		f.add(judgeResource(&seen.resources[i], l.progressing, now))
	}
	if len(shoot.Spec.Provider.Workers) > 0 && seen.unavailable == nil {
		f.add(corev1beta1.ShootEveryNodeReady, seen.nodesUnknown)
		if seen.nodesUnknown == nil {
			for _, err := range judgeNodes(shoot, &seen.nodesSeen, now) {
				f.add(corev1beta1.ShootEveryNodeReady, err)
			}
		}
		if seen.unreachable != nil { // the error has addresses, which are others every time
			f.add(corev1beta1.ShootSystemComponentsHealthy, errors.New("the API server does not get through to nodes: the tunnel between control plane and nodes does not work"))
		}
	}
	for _, r := range seen.reports {
		if found := r.judge(l.silence, now); found != nil {
			f[r.condition.Type] = append(f[r.condition.Type], *found)
		}
	}
	conditions := make([]corev1beta1.Condition, 0, len(conditionTypes(shoot)))
	for _, typ := range conditionTypes(shoot) {
		conditions = append(conditions, conclude(typ, f[typ], seen))
	}
	return conditions
}

// etcdRollout is for how long members of an etcd may be replaced. Each of three may take some minutes, with its image and what it missed.
const etcdRollout = 15 * time.Minute

// judgeRollout says that members of an etcd do not get its last change. It may serve its clients all the same.
func judgeRollout(etcd *druidv1alpha1.Etcd, now time.Time) error {
	for _, c := range etcd.Status.Conditions {
		if c.Type == druidv1alpha1.ConditionTypeAllMembersUpdated && c.Status == druidv1alpha1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) > etcdRollout {
			return fmt.Errorf("Etcd %q: it is being rolled out for more than %s: %s", etcd.Name, etcdRollout, c.Message)
		}
	}
	return nil
}

// judgeResource says what is wrong with a ManagedResource, and which condition it is for.
func judgeResource(mr *resourcesv1alpha1.ManagedResource, progressing time.Duration, now time.Time) (corev1beta1.ConditionType, error) {
	typ := corev1beta1.ConditionType(mr.Labels[constants.CareConditionType])
	if typ == "" {
		typ = corev1beta1.ShootSystemComponentsHealthy
		if mr.Spec.Class != nil && *mr.Spec.Class != "" {
			typ = corev1beta1.ShootControlPlaneHealthy
		}
	}
	err := managedresource.Applied(mr)
	if err == nil {
		err = managedresource.Healthy(mr)
	}
	if err == nil && progressing > 0 {
		if c := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing); c != nil && c.Status == corev1beta1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) > progressing {
			err = fmt.Errorf("ManagedResource %s/%s: it is being rolled out for more than %s: %s", mr.Namespace, mr.Name, progressing, c.Message)
		}
	}
	return typ, err
}

// judge returns what an extension has found, or nil if all is well.
func (r *report) judge(silence time.Duration, now time.Time) *finding {
	from := fmt.Sprintf("%s %q of type %q", r.kind, r.name, r.typ)
	if r.heartbeat != nil && silence > 0 && now.Sub(*r.heartbeat) > silence {
		return &finding{status: corev1beta1.ConditionUnknown, message: from + ": what its extension says is out of date, as it does not show that it works"}
	}
	if r.condition.Status == corev1beta1.ConditionTrue {
		return nil
	}
	return &finding{status: r.condition.Status, message: from + ": " + r.condition.Message, codes: r.condition.Codes}
}

func conditionTypes(shoot *corev1beta1.Shoot) []corev1beta1.ConditionType {
	list := []corev1beta1.ConditionType{
		corev1beta1.ShootAPIServerAvailable, corev1beta1.ShootControlPlaneHealthy, corev1beta1.ShootObservabilityComponentsHealthy,
		corev1beta1.ShootSystemComponentsHealthy,
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		list = append(list, corev1beta1.ShootEveryNodeReady)
	}
	return list
}

func judgeControlPlane(shoot *corev1beta1.Shoot, seen *observation, add func(corev1beta1.ConditionType, error)) {
	for _, name := range required(shoot) {
		if !slices.ContainsFunc(seen.deployments, func(d appsv1.Deployment) bool { return d.Name == name }) {
			add(corev1beta1.ShootControlPlaneHealthy, fmt.Errorf("Deployment %q is not there", name))
		}
	}
	for i := range seen.deployments {
		switch d := &seen.deployments[i]; d.Labels[constants.GardenRole] {
		case constants.GardenRoleMonitoring, constants.GardenRoleLogging, constants.GardenRoleObservability:
			add(corev1beta1.ShootObservabilityComponentsHealthy, kube.DeploymentHealthy(d))
		default:
			add(corev1beta1.ShootControlPlaneHealthy, kube.DeploymentHealthy(d))
		}
	}
	for _, name := range []string{"etcd-main", "etcd-events"} {
		index := slices.IndexFunc(seen.etcds, func(e druidv1alpha1.Etcd) bool { return e.Name == name })
		if index < 0 {
			add(corev1beta1.ShootControlPlaneHealthy, fmt.Errorf("Etcd %q is not there", name))
			continue
		}
		add(corev1beta1.ShootControlPlaneHealthy, healthOf(&seen.etcds[index]))
	}
	for i := range seen.statefulSets {
		s := &seen.statefulSets[i]
		switch s.Labels[constants.GardenRole] {
		case constants.GardenRoleMonitoring, constants.GardenRoleLogging, constants.GardenRoleObservability:
			if want := s.Spec.Replicas; want != nil && s.Status.ReadyReplicas < *want {
				add(corev1beta1.ShootObservabilityComponentsHealthy, fmt.Errorf("StatefulSet %q: %d of %d pods are ready", s.Name, s.Status.ReadyReplicas, *want))
			}
		}
	}
}

// well is what is said of conditions that are fulfilled.
var well = map[corev1beta1.ConditionType][2]string{
	corev1beta1.ShootAPIServerAvailable:             {"HealthzRequestSucceeded", "API server /healthz endpoint responded with success status code."},
	corev1beta1.ShootControlPlaneHealthy:            {"ControlPlaneRunning", "All control plane components are healthy."},
	corev1beta1.ShootObservabilityComponentsHealthy: {"ObservabilityComponentsRunning", "All observability components are healthy."},
	corev1beta1.ShootSystemComponentsHealthy:        {"SystemComponentsRunning", "All system components are healthy."},
	corev1beta1.ShootEveryNodeReady:                 {"EveryNodeReady", "All nodes are ready."},
}

// ill are the reasons of conditions that are not.
var ill = map[corev1beta1.ConditionType]string{
	corev1beta1.ShootAPIServerAvailable: "HealthzRequestFailed", corev1beta1.ShootControlPlaneHealthy: "ControlPlaneUnhealthy",
	corev1beta1.ShootObservabilityComponentsHealthy: "ObservabilityComponentsUnhealthy",
	corev1beta1.ShootSystemComponentsHealthy:        "SystemComponentsUnhealthy", corev1beta1.ShootEveryNodeReady: "NodesUnhealthy",
}

// severity orders what a condition may have: that something is wrong is said before that something is not known.
var severity = []corev1beta1.ConditionStatus{corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown, corev1beta1.ConditionFalse}

func conclude(typ corev1beta1.ConditionType, found []finding, seen *observation) corev1beta1.Condition {
	if typ == corev1beta1.ShootEveryNodeReady && seen.unavailable != nil {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionUnknown, Reason: "APIServerDown", Message: "Nothing is known of the nodes, as the API server does not answer."}
	}
	// What resource managers and the tunnel said last is not what is so now. That something is wrong stays said.
	if typ == corev1beta1.ShootSystemComponentsHealthy && seen.unavailable != nil &&
		!slices.ContainsFunc(found, func(f finding) bool { return f.status == corev1beta1.ConditionFalse }) {
		return corev1beta1.Condition{
			Type: typ, Status: corev1beta1.ConditionUnknown, Reason: "APIServerDown",
			Message: "Nothing is known of system components, as the API server does not answer.",
		}
	}
	if len(found) == 0 {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: well[typ][0], Message: well[typ][1]}
	}
	c, messages := corev1beta1.Condition{Type: typ, Reason: ill[typ]}, make([]string, 0, len(found))
	for _, f := range found {
		messages, c.Codes = append(messages, f.message), append(c.Codes, f.codes...)
		if c.Status == "" || slices.Index(severity, f.status) > slices.Index(severity, c.Status) {
			c.Status = f.status
		}
	}
	if c.Status == corev1beta1.ConditionUnknown {
		c.Reason = "OutdatedHealthCheckReport"
	}
	slices.Sort(messages)
	slices.Sort(c.Codes)
	c.Message, c.Codes = strings.Join(slices.Compact(messages), "; "), slices.Compact(c.Codes)
	return c
}

// tolerate lets what was well be ill for a while before it is called so.
func tolerate(before *corev1beta1.Condition, want corev1beta1.Condition, threshold time.Duration, now time.Time) corev1beta1.Condition {
	if want.Status != corev1beta1.ConditionFalse || threshold == 0 || before == nil {
		return want
	}
	switch before.Status {
	case corev1beta1.ConditionTrue:
		want.Status = corev1beta1.ConditionProgressing
	case corev1beta1.ConditionProgressing:
		if now.Sub(before.LastTransitionTime.Time) <= threshold {
			want.Status = corev1beta1.ConditionProgressing
		}
	case corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown:
	}
	return want
}

// pardon does not blame a cluster for what it does not have yet, as long as its creation goes well.
func pardon(shoot *corev1beta1.Shoot, want corev1beta1.Condition) corev1beta1.Condition {
	last := shoot.Status.LastOperation
	if want.Status != corev1beta1.ConditionFalse || last == nil || len(shoot.Status.LastErrors) > 0 {
		return want
	}
	creates := last.Type == corev1beta1.LastOperationTypeCreate || last.Type == corev1beta1.LastOperationTypeRestore
	if creates && (last.State == corev1beta1.LastOperationStateProcessing || last.State == corev1beta1.LastOperationStatePending) {
		want.Status = corev1beta1.ConditionProgressing
	}
	return want
}

// stale is whether a pod is in the way.
func stale(pod *corev1.Pod, now time.Time) bool {
	if pod.DeletionTimestamp != nil {
		return now.Sub(pod.DeletionTimestamp.Time) > stuckAfter
	}
	reason := pod.Status.Reason
	return reason == "Evicted" || reason == "NodeAffinity" || strings.HasPrefix(reason, "OutOf")
}
