package imagevector

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// OverwriteEnv is the environment variable that names the overwrite file.
	OverwriteEnv = "IMAGEVECTOR_OVERWRITE"
	// ComponentOverwriteEnv is the environment variable that names the overwrite file for the image vectors of components
	// which deploy images themselves.
	ComponentOverwriteEnv = "IMAGEVECTOR_OVERWRITE_COMPONENTS"
)

// ComponentOverwrites are the overwrite files for components with an image vector of their own: the text of the file, which is passed to
// the component unchanged, by the name of the component.
type ComponentOverwrites map[string]string

// OverwriteFiles are the paths of the overwrite files, or empty.
type OverwriteFiles struct {
	// Images overwrites the images of this release.
	Images string
	// Components overwrites the image vectors of deployed components.
	Components string
	// Charts overwrites the charts of this release.
	Charts string
}

// OverwriteFilesFromEnv is for mains: OverwriteFilesFromEnv(os.Getenv). Nothing else reads the environment.
func OverwriteFilesFromEnv(getenv func(string) string) OverwriteFiles {
	return OverwriteFiles{Images: getenv(OverwriteEnv), Components: getenv(ComponentOverwriteEnv), Charts: getenv(ChartsOverwriteEnv)}
}

// Load returns the images of this release with the overwrite files applied.
func (f OverwriteFiles) Load() (Vector, ComponentOverwrites, error) {
	vector, err := Default()
	if err != nil {
		return nil, nil, err
	}
	if vector, err = f.Apply(vector); err != nil {
		return nil, nil, err
	}
	if f.Components == "" {
		return vector, nil, nil
	}
	data, err := os.ReadFile(f.Components)
	if err != nil {
		return nil, nil, fmt.Errorf("read component image vector overwrites: %w", err)
	}
	components, err := ReadComponentOverwrites(data)
	if err != nil {
		return nil, nil, fmt.Errorf("component image vector overwrites %s: %w", f.Components, err)
	}
	return vector, components, nil
}

// Apply merges the overwrite file for images into a vector. It is for extensions with a vector of their own.
func (f OverwriteFiles) Apply(vector Vector) (Vector, error) {
	if f.Images == "" {
		return vector, nil
	}
	data, err := os.ReadFile(f.Images)
	if err != nil {
		return nil, fmt.Errorf("read image vector overwrite: %w", err)
	}
	overwrite, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("image vector overwrite %s: %w", f.Images, err)
	}
	return vector.Overwrite(overwrite), nil
}

// ReadComponentOverwrites parses a file of component image vectors and validates each of them:
//
//	components:
//	- name: etcd-druid
//	  imageVectorOverwrite: |
//	    images:
//	    - name: etcd
//	      ...
func ReadComponentOverwrites(data []byte) (ComponentOverwrites, error) {
	var file struct {
		Components []struct {
			Name                 string `json:"name"`
			ImageVectorOverwrite string `json:"imageVectorOverwrite"`
		} `json:"components"`
	}
	if err := unmarshal(data, "components", &file); err != nil {
		return nil, fmt.Errorf("parse component image vectors: %w", err)
	}
	var (
		errs field.ErrorList
		out  = make(ComponentOverwrites, len(file.Components))
	)
	for i, component := range file.Components {
		path := field.NewPath("components").Index(i)
		if component.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), "says which component the images are for"))
		} else if _, ok := out[component.Name]; ok {
			errs = append(errs, field.Duplicate(path.Child("name"), component.Name))
		}
		out[component.Name] = component.ImageVectorOverwrite

		overwritePath := path.Child("imageVectorOverwrite")
		vector, err := parse([]byte(component.ImageVectorOverwrite))
		if err != nil {
			errs = append(errs, field.Invalid(overwritePath, field.OmitValueType{}, err.Error()))
		}
		errs = append(errs, vector.Validate(overwritePath.Child("images"))...)
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return out, nil
}

// Texts returns the overwrite files for images and for components as they are, for processes that pass them on.
func (f OverwriteFiles) Texts() (images, components string, err error) {
	for path, text := range map[string]*string{f.Images: &images, f.Components: &components} {
		if path == "" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", "", fmt.Errorf("read image vector overwrite: %w", err)
		}
		*text = string(data)
	}
	return images, components, nil
}
