package imagevector

import (
	_ "embed"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// ChartsOverwriteEnv is the environment variable that names the overwrite file for charts.
const ChartsOverwriteEnv = "IMAGEVECTOR_OVERWRITE_CHARTS"

// GardenletChart is the name of the chart of the gardenlet among charts.
const GardenletChart = "gardenlet"

//go:embed charts.yaml
var defaultCharts []byte

// LoadCharts returns the charts of this release with the overwrite file for charts applied. Find returns their references like those of images.
func (f OverwriteFiles) LoadCharts() (Vector, error) {
	charts, err := ReadCharts(defaultCharts)
	if err != nil {
		return nil, fmt.Errorf("embedded charts: %w", err)
	}
	if f.Charts == "" {
		return charts, nil
	}
	data, err := os.ReadFile(f.Charts)
	if err != nil {
		return nil, fmt.Errorf("read overwrite of charts: %w", err)
	}
	overwrite, err := ReadCharts(data)
	if err != nil {
		return nil, fmt.Errorf("overwrite of charts %s: %w", f.Charts, err)
	}
	return charts.Overwrite(overwrite), nil
}

// ReadCharts parses and validates a file with charts. Its entries are those of an image vector. They are below the key charts, as in what
// `distribution push` writes, or below images, as in files for the original Gardener.
func ReadCharts(data []byte) (Vector, error) {
	var file struct {
		Charts *Vector `json:"charts"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("parse charts: %w", err)
	}
	if file.Charts == nil {
		return Read(data)
	}
	if errs := file.Charts.Validate(field.NewPath("charts")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return *file.Charts, nil
}
