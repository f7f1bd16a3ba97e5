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
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// HasHealth says whether objects of a kind can be unhealthy or rolling out. Of the others it matters only that they exist.
func HasHealth(kind schema.GroupKind) bool { return slices.Contains(checked, kind) }

// Healthy returns why an object does not work, or nil if it does, or if its kind has no health. A workload works when it has its minimum
// availability, also during a rollout. The error does not name the object. Kinds of Kubernetes have to come in their Go types, others may
// be unstructured.
func Healthy(object client.Object) error {
	switch o := object.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		return definitionHealthy(o)
	case *apiregistrationv1.APIService:
		return apiServiceHealthy(o)
	case *appsv1.DaemonSet:
		return daemonSetAvailable(o)
	case *appsv1.Deployment:
		return deploymentAvailable(o)
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

// RolledOut returns why the last change of an object is not rolled out to all its pods, or nil if it is. An object that fails after the
// rollout is rolled out all the same. The error does not name the object.
func RolledOut(object client.Object) error {
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		return daemonSetRolledOut(o)
	case *appsv1.Deployment:
		return deploymentRolledOut(o)
	case *appsv1.StatefulSet:
		return statefulSetRolledOut(o)
	case *unstructured.Unstructured:
		return unstructuredRolledOut(o)
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
	return errors.New("its availability has not been checked yet")
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
