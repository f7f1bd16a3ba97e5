package core

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Options are the feature gates that validation depends on.
type Options struct {
	// CloudProfileCapabilities allows machine capabilities in CloudProfiles.
	CloudProfileCapabilities bool
	// VersionClassificationLifecycle allows lifecycles of versions in CloudProfiles.
	VersionClassificationLifecycle bool
	// InPlaceNodeUpdates allows updates of nodes without replacing them.
	InPlaceNodeUpdates bool
	// DisableNginxIngressInShoot forbids the nginx ingress addon.
	DisableNginxIngressInShoot bool
}

// metadataPath is the path of the standard object metadata.
var metadataPath = field.NewPath("metadata")

// validateName returns the checks of a name that is a DNS subdomain.
func validateName(meta *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, namespaced, apivalidation.NameIsDNSSubdomain, metadataPath)
}

// validateLabelName returns the checks of a name that is a DNS label.
func validateLabelName(meta *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, namespaced, apivalidation.NameIsDNSLabel, metadataPath)
}

// ValidateStatusMetadata checks the metadata of an object whose status is changed.
func ValidateStatusMetadata(meta, old *metav1.ObjectMeta) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(meta, old, metadataPath)
	return append(errs, metav1validation.ValidateLabels(meta.Labels, metadataPath.Child("labels"))...)
}

// immutable refuses a change of a field.
func immutable(newValue, oldValue any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(newValue, oldValue, path)
}

// equal compares as API servers do: empty and missing lists are the same.
func equal(a, b any) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// supported refuses values that are not in a list.
func supported[T ~string](value T, values []T, path *field.Path) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// labelSelector checks a selector; no selector is fine.
func labelSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: true}, path)
}

// tolerations checks the tolerations of seed taints.
func tolerations(list []corev1beta1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, toleration := range list {
		path := path.Index(i)
		if toleration.Key == "" {
			errs = append(errs, field.Required(path.Child("key"), "must be set"))
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
		}
		id := toleration.Key
		if toleration.Value != nil {
			for _, msg := range validation.IsValidLabelValue(*toleration.Value) {
				errs = append(errs, field.Invalid(path.Child("value"), *toleration.Value, msg))
			}
			id += "=" + *toleration.Value
		}
		if seen.Has(id) || seen.Has(toleration.Key) {
			errs = append(errs, field.Duplicate(path, id))
		}
		seen.Insert(id)
	}
	return errs
}

// tolerates reports whether a whitelist allows a toleration: an entry without a value allows every value.
func tolerates(whitelist []corev1beta1.Toleration, toleration corev1beta1.Toleration) bool {
	return slices.ContainsFunc(whitelist, func(allowed corev1beta1.Toleration) bool {
		return allowed.Key == toleration.Key &&
			(allowed.Value == nil || toleration.Value != nil && *allowed.Value == *toleration.Value)
	})
}

// unsafeText are characters of HTML and Markdown.
var unsafeText = regexp.MustCompile("[<>\\[\\](){}!`]")

// plainText refuses empty texts, and those that user interfaces could render as markup.
func plainText(text *string, path *field.Path) field.ErrorList {
	switch {
	case text == nil:
		return nil
	case *text == "":
		return field.ErrorList{field.Required(path, "must not be empty if it is set")}
	case unsafeText.MatchString(*text):
		return field.ErrorList{field.Forbidden(path, "must be plain text, without any of <>[](){}!`")}
	}
	return nil
}

// serviceAccountPrefix is the prefix of the user names of service accounts.
const serviceAccountPrefix = "system:serviceaccount:"

// subject checks a user, group or service account.
func subject(s rbacv1.Subject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "must be set"))
	}
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			for _, msg := range apivalidation.ValidateServiceAccountName(s.Name, false) {
				errs = append(errs, field.Invalid(path.Child("name"), s.Name, msg))
			}
		}
		errs = append(errs, supported(s.APIGroup, []string{""}, path.Child("apiGroup"))...)
		if s.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), "must be set for a service account"))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		if account, ok := strings.CutPrefix(s.Name, serviceAccountPrefix); ok && s.Kind == rbacv1.UserKind && strings.Count(account, ":") != 1 {
			errs = append(errs, field.Invalid(path.Child("name"), s.Name, "must be the user name of a service account, with namespace and name"))
		}
		errs = append(errs, supported(s.APIGroup, []string{rbacv1.GroupName}, path.Child("apiGroup"))...)
		if s.Namespace != "" {
			errs = append(errs, field.Forbidden(path.Child("namespace"), "must not be set for users and groups"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind}))
	}
	return errs
}

// objectReference has the fields that all references to objects have.
type objectReference struct{ apiVersion, kind, namespace, name string }

// reference checks a reference to an object of one of several kinds, such as "v1, Secret".
func reference(ref objectReference, namespaced bool, kinds []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.apiVersion == "" {
		errs = append(errs, field.Required(path.Child("apiVersion"), "must be set"))
	}
	if ref.kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "must be set"))
	}
	errs = append(errs, referenceName(ref.name, path.Child("name"))...)
	if namespaced {
		if ref.namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), "must be set"))
		}
	}
	if gvk := fmt.Sprintf("%s, %s", ref.apiVersion, ref.kind); !slices.Contains(kinds, gvk) {
		errs = append(errs, field.NotSupported(path, gvk, kinds))
	}
	return errs
}

// referenceName checks the name of an object that is referred to.
func referenceName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(path, "must be set"))
	}
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

func fromObjectReference(ref corev1.ObjectReference) objectReference {
	return objectReference{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name}
}
