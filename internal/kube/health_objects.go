package kube

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNotObserved says that a status is about an older spec.
var errNotObserved = errors.New("its last change has not been seen by its controller")

// checked are the kinds that Healthy or RolledOut have something to say about.
var checked = []schema.GroupKind{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "ReplicaSet"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "Job"},
	{Kind: "Pod"},
	{Kind: "ReplicationController"},
	{Kind: "Service"},
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"},
	{Group: "cert.gardener.cloud", Kind: "Certificate"},
	{Group: "cert.gardener.cloud", Kind: "Issuer"},
	{Group: "monitoring.coreos.com", Kind: "Alertmanager"},
	{Group: "monitoring.coreos.com", Kind: "Prometheus"},
}

// HasHealth tells whether objects of a kind can be unhealthy or rolling out. Of the others it matters only that they are there.
func HasHealth(kind schema.GroupKind) bool { return slices.Contains(checked, kind) }

// Healthy returns why an object does not work, or nil if it does, or if objects of its kind always do. The error does not name the
// object. Kinds of Kubernetes have to come in their Go types, others may be unstructured.
func Healthy(object client.Object) error {
	switch o := object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return definitionHealthy(o)
	case *apiregistrationv1.APIService:
		return apiServiceHealthy(o)
	case *appsv1.DaemonSet:
		return daemonSetHealthy(o)
	case *appsv1.Deployment:
		return deploymentHealthy(o)
	case *appsv1.ReplicaSet:
		return enoughReady(o.Generation, o.Status.ObservedGeneration, o.Spec.Replicas, o.Status.ReadyReplicas)
	case *appsv1.StatefulSet:
		return enoughReady(o.Generation, o.Status.ObservedGeneration, o.Spec.Replicas, o.Status.ReadyReplicas)
	case *corev1.ReplicationController:
		return enoughReady(o.Generation, o.Status.ObservedGeneration, o.Spec.Replicas, o.Status.ReadyReplicas)
	case *batchv1.Job:
		return jobHealthy(o)
	case *corev1.Pod:
		if o.Status.Phase != corev1.PodRunning && o.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("its phase is %q", o.Status.Phase)
		}
	case *corev1.Service:
		if o.Spec.Type == corev1.ServiceTypeLoadBalancer && len(o.Status.LoadBalancer.Ingress) == 0 {
			return errors.New("its load balancer has no address")
		}
	case *unstructured.Unstructured:
		return unstructuredHealthy(o)
	}
	return nil
}

// RolledOut returns why the last change of an object has not arrived everywhere, or nil if it has. An object that failed afterwards is
// rolled out all the same. The error does not name the object.
func RolledOut(object client.Object) error {
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		switch s := o.Status; {
		case s.ObservedGeneration < o.Generation:
			return errNotObserved
		case o.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType && s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
			return fmt.Errorf("%d of %d pods are updated", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
		}
	case *appsv1.Deployment:
		return deploymentRolledOut(o)
	case *appsv1.StatefulSet:
		return statefulSetRolledOut(o)
	case *unstructured.Unstructured:
		return unstructuredRolledOut(o)
	}
	return nil
}

func replicas(want *int32) int32 {
	if want == nil {
		return 1
	}
	return *want
}

func enoughReady(generation, observed int64, wanted *int32, ready int32) error {
	switch want := replicas(wanted); {
	case observed < generation:
		return errNotObserved
	case ready < want:
		return fmt.Errorf("%d of %d pods are ready", ready, want)
	}
	return nil
}

func deploymentHealthy(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration < d.Generation {
		return errNotObserved
	}
	available := false
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue:
			available = true
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse,
			c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
	if !available {
		return fmt.Errorf("it lacks minimum availability: %d of %d pods are available", d.Status.AvailableReplicas, replicas(d.Spec.Replicas))
	}
	return nil
}

// newReplicaSetAvailable is the reason of a Deployment whose roll-out is complete, whatever becomes of its pods later.
const newReplicaSetAvailable = "NewReplicaSetAvailable"

func deploymentRolledOut(d *appsv1.Deployment) error {
	want := replicas(d.Spec.Replicas)
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return errNotObserved
	case s.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d pods are updated", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Errorf("%d old pods are not gone", s.Replicas-s.UpdatedReplicas)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			if c.Reason == newReplicaSetAvailable {
				return nil
			}
			break
		}
	}
	if d.Status.AvailableReplicas < want {
		return fmt.Errorf("%d of %d updated pods are available", d.Status.AvailableReplicas, want)
	}
	return nil
}

func statefulSetRolledOut(s *appsv1.StatefulSet) error {
	want := replicas(s.Spec.Replicas)
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		want = max(want-*rolling.Partition, 0)
	}
	switch {
	case s.Status.ObservedGeneration < s.Generation:
		return errNotObserved
	case s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && s.Status.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d pods are updated", s.Status.UpdatedReplicas, want)
	}
	return nil
}

func daemonSetHealthy(d *appsv1.DaemonSet) error {
	s := d.Status
	if s.ObservedGeneration < d.Generation {
		return errNotObserved
	}
	// What may be missing in an update may be missing: nodes come and go, and a DaemonSet of many pods is rarely complete.
	missing := 0
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		var err error
		if missing, err = intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(s.DesiredNumberScheduled), true); err != nil {
			return fmt.Errorf("maxUnavailable: %w", err)
		}
	}
	if enough := max(s.DesiredNumberScheduled-int32(missing), 0); s.NumberAvailable < enough { // not more than there are nodes
		return fmt.Errorf("%d of %d pods are available, %d are enough", s.NumberAvailable, s.DesiredNumberScheduled, enough)
	}
	return nil
}

func jobHealthy(j *batchv1.Job) error {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return fmt.Errorf("it failed: %s: %s", c.Reason, c.Message)
		}
	}
	return nil
}

func definitionHealthy(d *apiextensionsv1.CustomResourceDefinition) error {
	established := false
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return fmt.Errorf("its names are taken: %s", c.Message)
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			established = true
		}
	}
	if !established {
		return errors.New("it is not established")
	}
	return nil
}

func apiServiceHealthy(s *apiregistrationv1.APIService) error {
	for _, c := range s.Status.Conditions {
		if c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
		if c.Type == apiregistrationv1.Available {
			return fmt.Errorf("it is not available: %s: %s", c.Reason, c.Message)
		}
	}
	return errors.New("it has not been looked at yet")
}

// unstructuredCondition returns a condition of an object that has no Go type here, as a map, or nil.
func unstructuredCondition(u *unstructured.Unstructured, typ string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == typ {
			return condition
		}
	}
	return nil
}

// requireCondition returns why a condition is not True.
func requireCondition(u *unstructured.Unstructured, typ string) error {
	switch c := unstructuredCondition(u, typ); {
	case c == nil:
		return fmt.Errorf("it has no condition %s yet", typ)
	case c["status"] != "True":
		return fmt.Errorf("its condition %s is %v: %v: %v", typ, c["status"], c["reason"], c["message"])
	}
	return nil
}

func unstructuredHealthy(u *unstructured.Unstructured) error {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:
		if c := unstructuredCondition(u, "ConfigUnsupported"); c != nil && c["status"] == "True" {
			return fmt.Errorf("its configuration is not supported: %v", c["message"])
		}
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}, schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Alertmanager"}:
		return errors.Join(requireCondition(u, "Available"), requireCondition(u, "Reconciled"))
	case schema.GroupKind{Group: "cert.gardener.cloud", Kind: "Certificate"}, schema.GroupKind{Group: "cert.gardener.cloud", Kind: "Issuer"}:
		if err := observed(u); err != nil {
			return err
		}
		if state, _, _ := unstructured.NestedString(u.Object, "status", "state"); state != "Ready" {
			message, _, _ := unstructured.NestedString(u.Object, "status", "message")
			return fmt.Errorf("its state is %q: %s", state, message)
		}
	}
	return nil
}

func unstructuredRolledOut(u *unstructured.Unstructured) error {
	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}, schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Alertmanager"}:
		if c := unstructuredCondition(u, "Reconciled"); c != nil {
			if seen, ok := c["observedGeneration"].(int64); ok && seen < u.GetGeneration() {
				return errNotObserved
			}
		}
		want, ok, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !ok {
			want = 1
		}
		updated, _, _ := unstructured.NestedInt64(u.Object, "status", "updatedReplicas")
		if updated < want {
			return fmt.Errorf("%d of %d pods are updated", updated, want)
		}
	case schema.GroupKind{Group: "cert.gardener.cloud", Kind: "Certificate"}, schema.GroupKind{Group: "cert.gardener.cloud", Kind: "Issuer"}:
		return observed(u)
	}
	return nil
}

func observed(u *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen < u.GetGeneration() {
		return errNotObserved
	}
	return nil
}
