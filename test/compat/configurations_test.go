package compat

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/validation/config"
)

// TestExampleConfigurations reads the example configurations the way the processes do.
func TestExampleConfigurations(t *testing.T) {
	dir := filepath.Join(factsDir(t), "examples")
	for name, read := range map[string]func(path string) error{
		"20-componentconfig-gardener-admission-controller.yaml": func(path string) error {
			_, err := configfile.Kind[admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration]{
				AddToScheme: admissioncontrollerconfigv1alpha1.AddToScheme, Validate: config.ValidateAdmissionController,
			}.Read(path)
			return err
		},
		"20-componentconfig-gardener-controller-manager.yaml": func(path string) error {
			_, err := configfile.Kind[controllermanagerconfigv1alpha1.ControllerManagerConfiguration]{
				AddToScheme: controllermanagerconfigv1alpha1.AddToScheme, Validate: config.ValidateControllerManager,
			}.Read(path)
			return err
		},
		"operator/10-componentconfig.yaml": func(path string) error {
			_, err := configfile.Kind[operatorconfigv1alpha1.OperatorConfiguration]{
				AddToScheme: operatorconfigv1alpha1.AddToScheme, Validate: config.ValidateOperator,
			}.Read(path)
			return err
		},
		"node-agent/10-componentconfig.yaml": func(path string) error {
			_, err := configfile.Kind[nodeagentconfigv1alpha1.NodeAgentConfiguration]{
				AddToScheme: nodeagentconfigv1alpha1.AddToScheme, Validate: config.ValidateNodeAgent,
			}.Read(path)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := read(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestResourceManagerExample reads the example whose key controllers.managedResources is called managedResource in the API. The
// original does not notice; we say so, and read the rest once it is corrected.
func TestResourceManagerExample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "examples", "resource-manager", "10-componentconfig.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kind := configfile.Kind[resourcemanagerconfigv1alpha1.ResourceManagerConfiguration]{
		AddToScheme: resourcemanagerconfigv1alpha1.AddToScheme, Validate: config.ValidateResourceManager,
	}
	if _, err := kind.Decode(data); err == nil || !strings.Contains(err.Error(), `unknown field "controllers.managedResources"`) {
		t.Errorf("the misspelt key is not named: %v", err)
	}
	if _, err := kind.Decode(bytes.ReplaceAll(data, []byte("managedResources:"), []byte("managedResource:"))); err != nil {
		t.Error(err)
	}
}
