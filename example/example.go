// Package example holds manifests to start with. A local landscape has all but Shoots, the ManagedSeed and the Plant, which are for users to apply.
package example

import (
	"embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The files with objects that a Shoot refers to, in the order in which they can be applied.
const (
	Project      = "project.yaml"
	CloudProfile = "cloudprofile.yaml"
	Credentials  = "credentials.yaml"
)

// The files with Shoots.
const (
	Shoot           = "shoot.yaml"
	ShootWorkerless = "shoot-workerless.yaml"
	// ShootHA needs a seed with three zones.
	ShootHA = "shoot-ha.yaml"
	// ShootRuntime has an additional container runtime.
	ShootRuntime = "shoot-runtime.yaml"
)

// ManagedSeed is the file with a ManagedSeed.
const ManagedSeed = "managedseed.yaml"

// ManagedSeedLocal is the file with a ManagedSeed in a landscape, and all that it refers to.
const ManagedSeedLocal = "managedseed-local.yaml"

// Plant is the file with a Plant and the kubeconfig of its cluster.
const Plant = "plant.yaml"

// The files for shoots on servers that exist, which provider-hosts makes machines of.
const (
	HostsCloudProfile = "hosts/cloudprofile.yaml"
	HostsCredentials  = "hosts/credentials.yaml"
	HostsShoot        = "hosts/shoot.yaml"
)

//go:embed *.yaml hosts/*.yaml
var files embed.FS

// Objects returns the objects in files.
func Objects(names ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for document := range strings.SplitSeq("\n"+string(content), "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, object)
		}
	}
	return all, nil
}
