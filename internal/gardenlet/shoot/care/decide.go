package care

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/managed"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// expirySoon is how long before the end of an authority its owner is told to rotate it.
	expirySoon = 365 * 24 * time.Hour
	// stuckAfter is how long a pod may take to end.
	stuckAfter = 5 * time.Minute
)

// observation is what was seen of a control plane.
type observation struct {
	deployments  []appsv1.Deployment
	statefulSets []appsv1.StatefulSet
	etcds        []druidv1alpha1.Etcd
	resources    []resourcesv1alpha1.ManagedResource
	credentials  []corev1.Secret
	reports      []report
	// unavailable is why the API server did not say that it is well, within responseTime.
	unavailable  error
	responseTime time.Duration
	nodes        []corev1.Node
	nodesUnknown error
}

// report is what one extension says about one condition.
type report struct {
	from      string
	condition corev1beta1.Condition
}

func (o *observation) addExtensions(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if e, ok := item.(extensionsv1alpha1.Object); ok {
			for _, condition := range e.GetExtensionStatus().GetConditions() {
				o.reports = append(o.reports, report{e.GetExtensionSpec().GetExtensionType() + " " + e.GetName(), condition})
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

// judge returns the conditions of a shoot.
func judge(shoot *corev1beta1.Shoot, seen *observation) []corev1beta1.Condition {
	if hibernated(shoot) {
		var list []corev1beta1.Condition
		for _, typ := range types(shoot) {
			list = append(list, corev1beta1.Condition{
				Type: typ, Status: corev1beta1.ConditionTrue, Reason: "ConditionNotChecked", Message: "Shoot cluster has been hibernated.",
			})
		}
		return list
	}
	problems := map[corev1beta1.ConditionType][]string{}
	add := func(typ corev1beta1.ConditionType, err error) {
		if err != nil {
			problems[typ] = append(problems[typ], err.Error())
		}
	}
	add(corev1beta1.ShootAPIServerAvailable, seen.unavailable)
	judgeControlPlane(shoot, seen, add)
	for i := range seen.resources {
		mr := &seen.resources[i]
		typ := corev1beta1.ConditionType(mr.Labels[constants.CareConditionType])
		if typ == "" {
			typ = corev1beta1.ShootSystemComponentsHealthy
			if mr.Spec.Class != nil && *mr.Spec.Class != "" {
				typ = corev1beta1.ShootControlPlaneHealthy
			}
		}
		err := managed.Applied(mr)
		if err == nil {
			err = managed.Healthy(mr)
		}
		add(typ, err)
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		if seen.unavailable == nil && seen.nodesUnknown == nil && len(seen.nodes) == 0 {
			add(corev1beta1.ShootEveryNodeReady, fmt.Errorf("no node has joined the cluster yet"))
		}
		add(corev1beta1.ShootEveryNodeReady, seen.nodesUnknown)
		for i := range seen.nodes {
			add(corev1beta1.ShootEveryNodeReady, kube.NodeReady(&seen.nodes[i]))
		}
	}
	for _, r := range seen.reports {
		if r.condition.Status != corev1beta1.ConditionTrue {
			add(r.condition.Type, fmt.Errorf("extension %s: %s", r.from, r.condition.Message))
		}
	}
	conditions := make([]corev1beta1.Condition, 0, len(types(shoot)))
	for _, typ := range types(shoot) {
		conditions = append(conditions, conclude(typ, problems[typ], seen))
	}
	return conditions
}

func types(shoot *corev1beta1.Shoot) []corev1beta1.ConditionType {
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
			add(corev1beta1.ShootControlPlaneHealthy, fmt.Errorf("Deployment %q is not there", name)) //nolint:staticcheck // kinds are proper names
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
			add(corev1beta1.ShootControlPlaneHealthy, fmt.Errorf("Etcd %q is not there", name)) //nolint:staticcheck // kinds are proper names
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

func conclude(typ corev1beta1.ConditionType, problems []string, seen *observation) corev1beta1.Condition {
	if typ == corev1beta1.ShootEveryNodeReady && seen.unavailable != nil {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionUnknown, Reason: "APIServerDown", Message: "Nothing is known of the nodes, as the API server does not answer."}
	}
	if len(problems) == 0 {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: well[typ][0], Message: well[typ][1]}
	}
	slices.Sort(problems)
	return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionFalse, Reason: ill[typ], Message: strings.Join(slices.Compact(problems), "; ")}
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

// constraints say what the owner of a shoot cannot do now, or should do soon.
func constraints(shoot *corev1beta1.Shoot, seen *observation, now time.Time) []corev1beta1.Condition {
	possible := func(typ corev1beta1.ConditionType, reason, message string) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Reason: reason, Message: message}
	}
	list := []corev1beta1.Condition{
		possible(corev1beta1.ShootMaintenancePreconditionsSatisfied, "NoProblematicWebhooks", "Nothing is known that is in the way of maintenance."),
		authorities(seen, now),
	}
	if len(shoot.Spec.Provider.Workers) > 0 {
		list = append(list, possible(corev1beta1.ShootHibernationPossible, "NoProblematicWebhooks", "Nothing is known that is in the way of hibernation."))
	}
	return list
}

// authorities says whether the certificates of authorities are good for a year yet.
func authorities(seen *observation, now time.Time) corev1beta1.Condition {
	condition := corev1beta1.Condition{
		Type: corev1beta1.ShootCACertificateValiditiesAcceptable, Status: corev1beta1.ConditionTrue, Reason: "NoExpiringCACertificates",
		Message: "All authorities are valid for a year at least.",
	}
	var expiring []string
	for _, secret := range seen.credentials {
		until, err := strconv.ParseInt(secret.Labels["valid-until-time"], 10, 64)
		if err != nil || secret.Data["ca.key"] == nil {
			continue
		}
		if end := time.Unix(until, 0).UTC(); end.Sub(now) < expirySoon {
			expiring = append(expiring, fmt.Sprintf("%q expires on %s", secret.Labels["name"], end.Format(time.DateOnly)))
		}
	}
	if len(expiring) > 0 {
		slices.Sort(expiring)
		condition.Status, condition.Reason = corev1beta1.ConditionFalse, "ExpiringCACertificates"
		condition.Message = "Rotate the authorities of the cluster: " + strings.Join(expiring, ", ")
	}
	return condition
}

// stale is whether a pod is in the way.
func stale(pod *corev1.Pod, now time.Time) bool {
	if pod.DeletionTimestamp != nil {
		return now.Sub(pod.DeletionTimestamp.Time) > stuckAfter
	}
	reason := pod.Status.Reason
	return reason == "Evicted" || reason == "NodeAffinity" || strings.HasPrefix(reason, "OutOf")
}
