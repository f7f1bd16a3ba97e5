package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployment(status appsv1.DeploymentStatus) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: status}
}

func deploymentConditions(available, progressing corev1.ConditionStatus, reason string) []appsv1.DeploymentCondition {
	return []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available}, {Type: appsv1.DeploymentProgressing, Status: progressing, Reason: reason, Message: "m"},
	}
}

func other(apiVersion, kind string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetGeneration(2)
	return u
}

func TestHealthyAndRolledOut(t *testing.T) {
	rolledOut := deploymentConditions("True", "True", "NewReplicaSetAvailable")
	daemonSet := func(strategy appsv1.DaemonSetUpdateStrategy, status appsv1.DaemonSetStatus) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DaemonSetSpec{UpdateStrategy: strategy}, Status: status}
	}
	surging := appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{
		MaxSurge: new(intstr.FromString("10%")), MaxUnavailable: new(intstr.FromInt32(0)),
	}}
	rolling := appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("10%"))}}
	statefulSet := func(strategy appsv1.StatefulSetUpdateStrategy, status appsv1.StatefulSetStatus) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: strategy}, Status: status}
	}
	condition := func(typ, status string) any {
		return map[string]any{"type": typ, "status": status, "reason": "R", "message": "m", "observedGeneration": int64(2)}
	}
	for name, tc := range map[string]struct {
		object               client.Object
		healthy, progressing string
	}{
		"Deployment": {object: deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, Conditions: rolledOut})},
		"Deployment, not observed": {
			object:  deployment(appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: rolledOut}),
			healthy: "its last change has not been observed by its controller", progressing: "its last change has not been observed by its controller",
		},
		"Deployment, available while it rolls": {
			object: deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2, Conditions: deploymentConditions("True", "True", "ReplicaSetUpdated"),
			}),
			progressing: "1 of 2 pods are updated",
		},
		"Deployment with old pods": {
			object:      deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3, Conditions: rolledOut[:1]}),
			progressing: "1 old pods are not gone",
		},
		"Deployment, updated but not available": {
			object: deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1, Conditions: deploymentConditions("False", "True", "ReplicaSetUpdated"),
			}),
			healthy: "it lacks minimum availability: 1 of 2 pods are available", progressing: "1 of 2 updated pods are available",
		},
		"Deployment whose pods failed after the rollout": {
			object: deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, Conditions: deploymentConditions("False", "True", "NewReplicaSetAvailable"),
			}),
			healthy: "it lacks minimum availability: 0 of 2 pods are available",
		},
		"Deployment that got stuck": {
			object: deployment(appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2,
				Conditions: deploymentConditions("True", "False", "ProgressDeadlineExceeded"),
			}),
			healthy: "ProgressDeadlineExceeded: m", progressing: "1 of 2 pods are updated",
		},
		"DaemonSet with as many pods as in an update": {
			object: daemonSet(rolling, appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 10, UpdatedNumberScheduled: 10, NumberAvailable: 9}),
		},
		"DaemonSet with as many pods as in an update that starts new pods first": {
			object: daemonSet(surging, appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 10, UpdatedNumberScheduled: 10, NumberAvailable: 9}),
		},
		"DaemonSet with fewer": {
			object:  daemonSet(rolling, appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 10, UpdatedNumberScheduled: 9, NumberAvailable: 8}),
			healthy: "8 of 10 pods are available, 9 are enough", progressing: "9 of 10 pods are updated",
		},
		"DaemonSet that is updated by hand": {
			object: daemonSet(appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
				appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, NumberAvailable: 2}),
		},
		"StatefulSet": {
			object:  statefulSet(appsv1.StatefulSetUpdateStrategy{}, appsv1.StatefulSetStatus{ReadyReplicas: 2, UpdatedReplicas: 1}),
			healthy: "2 of 3 pods are ready", progressing: "1 of 3 pods are updated",
		},
		"StatefulSet with a partition": {
			object: statefulSet(appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}},
				appsv1.StatefulSetStatus{ReadyReplicas: 3, UpdatedReplicas: 1}),
		},
		"ReplicaSet": {object: &appsv1.ReplicaSet{}, healthy: "0 of 1 pods are ready"},
		"Job":        {object: &batchv1.Job{}},
		"Job that failed": {
			object:  &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Reason: "R", Message: "m"}}}},
			healthy: "it failed: R: m",
		},
		"Pod":                     {object: &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, healthy: `its phase is "Pending"`},
		"Service":                 {object: &corev1.Service{}},
		"Service without address": {object: &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}, healthy: "its load balancer has no address"},
		"CustomResourceDefinition": {
			object: &apiextensionsv1.CustomResourceDefinition{}, healthy: "it is not established",
		},
		"APIService":     {object: &apiregistrationv1.APIService{}, healthy: "its availability has not been checked yet"},
		"something else": {object: &corev1.ConfigMap{}},
		"Prometheus": {object: other("monitoring.coreos.com/v1", "Prometheus", map[string]any{"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{
			"updatedReplicas": int64(2), "conditions": []any{condition("Available", "True"), condition("Reconciled", "True")},
		}})},
		"Prometheus that is not available": {
			object: other("monitoring.coreos.com/v1", "Prometheus", map[string]any{"status": map[string]any{
				"conditions": []any{condition("Available", "Degraded"), condition("Reconciled", "True")},
			}}),
			healthy: "its condition Available is Degraded: R: m", progressing: "0 of 1 pods are updated",
		},
		"Certificate": {
			object:  other("cert.gardener.cloud/v1alpha1", "Certificate", map[string]any{"status": map[string]any{"observedGeneration": int64(2), "state": "Error", "message": "m"}}),
			healthy: `its state is "Error": m`,
		},
		"VerticalPodAutoscaler": {
			object: other("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", map[string]any{"status": map[string]any{
				"conditions": []any{condition("ConfigUnsupported", "True")},
			}}),
			healthy: "its configuration is not supported: m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for what, got := range map[string][2]string{
				"Healthy": {text(Healthy(tc.object)), tc.healthy}, "RolledOut": {text(RolledOut(tc.object)), tc.progressing},
			} {
				if got[0] != got[1] {
					t.Errorf("%s() is %q, want %q", what, got[0], got[1])
				}
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDeploymentComplete(t *testing.T) {
	for name, tc := range map[string]struct {
		status appsv1.DeploymentStatus
		want   string
	}{
		"complete":      {status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}},
		"not observed":  {appsv1.DeploymentStatus{ObservedGeneration: 1}, `Deployment "": its last change has not been observed by its controller`},
		"not updated":   {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2}, `Deployment "": 1 of 2 pods are updated`},
		"with old pods": {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3}, `Deployment "": 1 old pods are not gone`},
		"not available, although it was rolled out": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1, Conditions: deploymentConditions("True", "True", "NewReplicaSetAvailable")},
			`Deployment "": 1 of 2 updated pods are available`,
		},
		"scaled down": {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}, `Deployment "": 1 pods too many are not gone`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(DeploymentComplete(deployment(tc.status))); got != tc.want {
				t.Errorf("DeploymentComplete() is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDeploymentAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		status appsv1.DeploymentStatus
		want   string
	}{
		"while it rolls":          {status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2, Conditions: deploymentConditions("True", "True", "ReplicaSetUpdated")}},
		"not observed":            {status: appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: deploymentConditions("True", "True", "NewReplicaSetAvailable")}},
		"not available":           {appsv1.DeploymentStatus{ObservedGeneration: 2, AvailableReplicas: 1, Conditions: deploymentConditions("False", "True", "R")}, `Deployment "": it lacks minimum availability: 1 of 2 pods are available`},
		"stuck":                   {appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: deploymentConditions("True", "False", "ProgressDeadlineExceeded")}, `Deployment "": ProgressDeadlineExceeded: m`},
		"without any status, yet": {appsv1.DeploymentStatus{}, `Deployment "": it lacks minimum availability: 0 of 2 pods are available`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(DeploymentAvailable(deployment(tc.status))); got != tc.want {
				t.Errorf("DeploymentAvailable() is %q, want %q", got, tc.want)
			}
		})
	}
}
