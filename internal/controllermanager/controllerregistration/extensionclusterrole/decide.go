package extensionclusterrole

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// selectorOf returns the selector for the ServiceAccounts of a ClusterRole.
func selectorOf(role *rbacv1.ClusterRole) (labels.Selector, error) {
	text, ok := role.Annotations[annotationSelector]
	if !ok {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s is missing", role.Name, annotationSelector)
	}
	selector := &metav1.LabelSelector{}
	if err := json.Unmarshal([]byte(text), selector); err != nil {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s: %w", role.Name, annotationSelector, err)
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("ClusterRole %q: annotation %s: %w", role.Name, annotationSelector, err)
	}
	return s, nil
}

// desired returns the binding of a ClusterRole to those of the ServiceAccounts that are in namespaces of seeds.
func desired(role *rbacv1.ClusterRole, accounts []metav1.PartialObjectMetadata) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:            role.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(role, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for i := range accounts {
		if inSeedNamespace(accounts[i].Namespace) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: accounts[i].Namespace, Name: accounts[i].Name,
			})
		}
	}
	slices.SortFunc(binding.Subjects, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return binding
}

func marked(obj client.Object) bool { return obj.GetLabels()[labelCustomPermissions] == "true" }

func inSeedNamespace(namespace string) bool {
	return strings.HasPrefix(namespace, constants.SeedNamespaceNamePrefix)
}
