package core

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// ValidateControllerDeployment checks a new ControllerDeployment. Other versions are converted first.
func ValidateControllerDeployment(deployment *gardencorev1.ControllerDeployment) field.ErrorList {
	errs := validateLabelName(&deployment.ObjectMeta, false)
	names, refErrs := DeploymentResources(deployment.Resources, field.NewPath("resources"))
	errs = append(errs, refErrs...)
	switch {
	case deployment.Helm != nil:
		errs = append(errs, helmDeployment(deployment.Helm, names, field.NewPath("helm"))...)
	case deployment.Annotations[constants.MigrationControllerDeploymentType] == "":
		errs = append(errs, field.Forbidden(field.NewPath(""), "an installation method must be set"))
	}
	return errs
}

// ValidateControllerDeploymentUpdate checks a changed ControllerDeployment.
func ValidateControllerDeploymentUpdate(deployment, old *gardencorev1.ControllerDeployment) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&deployment.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, ValidateControllerDeployment(deployment)...)
}

func helmDeployment(helm *gardencorev1.HelmControllerDeployment, resources sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	hasChart := len(helm.RawChart) > 0
	if hasChart == (helm.OCIRepository != nil) {
		errs = append(errs, field.Required(path, "exactly one of rawChart and ociRepository must be set"))
	}
	if helm.OCIRepository != nil {
		errs = append(errs, OCIRepository(helm.OCIRepository, path.Child("ociRepository"))...)
	}
	if helm.Values != nil {
		errs = append(errs, HelmValues(helm.Values.Raw, resources, path.Child("values"))...)
	}
	return errs
}

// OCIRepository checks a reference to an artifact in an OCI registry.
func OCIRepository(repository *gardencorev1.OCIRepository, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if repository.Ref != nil {
		const excluded = "is not possible together with ref"
		for name, value := range ordered.Map(map[string]*string{"repository": repository.Repository, "tag": repository.Tag, "digest": repository.Digest}) {
			if ptr.Deref(value, "") != "" {
				errs = append(errs, field.Forbidden(path.Child(name), excluded))
			}
		}
		if *repository.Ref != "" || len(errs) > 0 {
			return errs
		}
	}
	if ptr.Deref(repository.Repository, "") == "" || ptr.Deref(repository.Tag, "") == "" && ptr.Deref(repository.Digest, "") == "" {
		errs = append(errs, field.Required(path, "either ref, or repository with tag or digest, must be set"))
	}
	if digest := ptr.Deref(repository.Digest, ""); ptr.Deref(repository.Repository, "") != "" && digest != "" && !strings.HasPrefix(digest, "sha256:") {
		errs = append(errs, field.Invalid(path.Child("digest"), digest, `must begin with "sha256:"`))
	}
	return errs
}

// placeholder is how values refer to data of a resource: {{ .resources.NAME.data.KEY }}.
var placeholder = regexp.MustCompile(`^\s*\.resources\.([A-Za-z_][A-Za-z0-9_]*)\.data\.([A-Za-z0-9_.-]+)\s*$`)

// HelmValues checks the placeholders in the values of a chart.
func HelmValues(raw []byte, resources sets.Set[string], path *field.Path) field.ErrorList {
	var values any
	if err := json.Unmarshal(raw, &values); err != nil {
		return field.ErrorList{field.Invalid(path, string(raw), err.Error())}
	}
	var errs field.ErrorList
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, v := range ordered.Map(value) {
				visit(v)
			}
		case []any:
			for _, v := range value {
				visit(v)
			}
		case string:
			if msg := checkPlaceholders(value, resources); msg != "" {
				errs = append(errs, field.Invalid(path, value, msg))
			}
		}
	}
	visit(values)
	return errs
}

func checkPlaceholders(value string, resources sets.Set[string]) string {
	_, err := ExpandPlaceholders(value, func(resource, _ string) (string, error) {
		if !resources.Has(resource) {
			return "", errors.New("has a placeholder for " + resource + ", which is not among the resources")
		}
		return "", nil
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// ExpandPlaceholders replaces each {{ .resources.NAME.data.KEY }} in a string of a chart's values by what data returns. Nothing else may be in
// double braces, so values cannot run templates.
func ExpandPlaceholders(value string, data func(resource, key string) (string, error)) (string, error) {
	var expanded strings.Builder
	for {
		before, rest, ok := strings.Cut(value, "{{")
		if strings.Contains(before, "}}") {
			return "", errors.New("has a }} without a {{")
		}
		expanded.WriteString(before)
		if !ok {
			return expanded.String(), nil
		}
		inside, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return "", errors.New("has a {{ without a }}")
		}
		m := placeholder.FindStringSubmatch(inside)
		if m == nil {
			return "", errors.New("placeholders must look like {{ .resources.NAME.data.KEY }}")
		}
		text, err := data(m[1], m[2])
		if err != nil {
			return "", err
		}
		expanded.WriteString(text)
		value = after
	}
}

var resourceName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// DeploymentResources checks what the values of a chart refer to, and returns the names for placeholders.
func DeploymentResources(resources []gardencorev1.NamedResourceReference, path *field.Path) (sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, resource := range resources {
		path := path.Index(i)
		if resource.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "must be set"))
		}
		if !resourceName.MatchString(resource.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), resource.Name, "must consist of letters, digits and underscores, so that placeholders can name it"))
		}
		if names.Has(resource.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), resource.Name))
		}
		names.Insert(resource.Name)
		errs = append(errs, crossVersionReference(resource.ResourceRef, []string{"v1, Secret", "v1, ConfigMap"}, path.Child("resourceRef"))...)
	}
	return names, errs
}
