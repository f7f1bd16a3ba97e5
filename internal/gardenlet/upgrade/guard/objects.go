package guard

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
)

const healthPort = 8081

// labels are those of the guard's objects. Its pods are none of the gardenlet's Deployment and Service.
func labels() map[string]string {
	return map[string]string{"app": "gardener", "role": gardenlet.GuardName}
}

// Role returns the ClusterRole of the guard: all that the gardenlet before the upgrade may do, so that it can restore that.
func Role(previous []trial.Previous) (*rbacv1.ClusterRole, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: gardenlet.GuardRole, Labels: labels()}}
	for _, p := range previous {
		if p.Missing || p.Object.GetKind() != "ClusterRole" {
			continue
		}
		before := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object.Object, before); err != nil {
			return nil, fmt.Errorf("ClusterRole %q: %w", p.Object.GetName(), err)
		}
		role.Rules = append(role.Rules, before.Rules...)
	}
	return role, nil
}

// Objects returns the objects of the guard, besides its role: it has the image of the gardenlet before the upgrade, and runs where and how that does.
// All of them are deleted with the role, whose UID is given.
func Objects(previous []trial.Previous, role types.UID) ([]client.Object, error) {
	before, err := deploymentOf(previous)
	if err != nil {
		return nil, err
	}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: constants.GardenNamespace, Name: gardenlet.GuardName, Labels: labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: gardenlet.GuardRole, UID: role}},
		}
	}
	binding := meta()
	binding.Namespace, binding.Name = "", gardenlet.GuardRole
	podLabels := maps.Clone(before.Spec.Template.Labels)
	maps.Copy(podLabels, labels())
	pod := before.Spec.Template.Spec.DeepCopy()
	container := pod.Containers[0]
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: binding, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: gardenlet.GuardRole},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: constants.GardenNamespace, Name: gardenlet.GuardName}},
		},
		&appsv1.Deployment{
			ObjectMeta: meta(),
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels()},
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
					Spec: corev1.PodSpec{
						ServiceAccountName: gardenlet.GuardName, PriorityClassName: pod.PriorityClassName, Tolerations: pod.Tolerations,
						NodeSelector: pod.NodeSelector, HostAliases: pod.HostAliases, ImagePullSecrets: pod.ImagePullSecrets, SecurityContext: pod.SecurityContext,
						Containers: []corev1.Container{{
							Name: gardenlet.GuardName, Image: container.Image, ImagePullPolicy: container.ImagePullPolicy, Args: []string{gardenlet.GuardName},
							Env: environment(container.Env), SecurityContext: container.SecurityContext, Resources: workload.Requests("5m", "30Mi"),
							ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
								Path: "/readyz", Port: intstr.FromInt32(healthPort),
							}}},
						}},
					},
				},
			},
		},
	}, nil
}

// environment returns the variables of a gardenlet that are for any process: where its API server is, for example.
func environment(of []corev1.EnvVar) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, variable := range of {
		if !strings.HasPrefix(variable.Name, "IMAGEVECTOR_") {
			env = append(env, variable)
		}
	}
	return env
}

// deploymentOf returns the Deployment of the gardenlet before the upgrade.
func deploymentOf(previous []trial.Previous) (*appsv1.Deployment, error) {
	for _, p := range previous {
		if p.Missing || p.Object.GetKind() != "Deployment" || p.Object.GetName() != gardenlet.Name {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object.Object, deployment); err != nil {
			return nil, fmt.Errorf("Deployment %q: %w", gardenlet.Name, err)
		}
		if len(deployment.Spec.Template.Spec.Containers) > 0 {
			return deployment, nil
		}
	}
	return nil, errors.New("the chart has no Deployment \"gardenlet\" that exists in the seed: the gardenlet runs elsewhere, and cannot update itself")
}
