package imagevector

import (
	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns everything that is wrong with the vector, with path being that of its list.
func (v Vector) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, source := range v {
		errs = append(errs, source.validate(path.Index(i))...)
	}
	return errs
}

func (s Source) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "components look an image up by its name"))
	}

	switch {
	case s.Ref == nil && s.Repository == nil:
		errs = append(errs, field.Required(path.Child("repository"), "give either repository or ref"))
	case s.Ref != nil && s.Repository != nil:
		errs = append(errs, field.Forbidden(path.Child("repository"), "ref is the full reference already"))
	}
	if s.Ref != nil && s.Tag != nil {
		errs = append(errs, field.Forbidden(path.Child("tag"), "ref is the full reference already"))
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"ref", s.Ref}, {"repository", s.Repository}, {"tag", s.Tag}} {
		if f.value != nil && *f.value == "" {
			errs = append(errs, field.Invalid(path.Child(f.name), *f.value, "must not be empty, leave it out instead"))
		}
	}

	for _, f := range []struct {
		name  string
		value *string
	}{{"runtimeVersion", s.RuntimeVersion}, {"targetVersion", s.TargetVersion}} {
		if f.value == nil {
			continue
		}
		if *f.value == "" {
			errs = append(errs, field.Invalid(path.Child(f.name), *f.value, "must not be empty, leave it out instead"))
		} else if _, err := semver.NewConstraint(*f.value); err != nil {
			errs = append(errs, field.Invalid(path.Child(f.name), *f.value, err.Error()))
		}
	}
	for i, a := range s.Architectures {
		if a != amd64 && a != arm64 {
			errs = append(errs, field.NotSupported(path.Child("architectures").Index(i), a, []string{amd64, arm64}))
		}
	}
	return errs
}
