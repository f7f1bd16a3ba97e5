package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// programsFile is in images and has the names of the components that the image is for, one per line. It is a path of its own and not beside
// the binary, so that a copy of the binary finds it, too.
var programsFile = "/usr/local/share/kubernetes/programs"

// permitted returns an error if this is an image that is not for the component. Machines have no such file, and run all components.
//
// A kube-apiserver reads kubeconfigs, which can name programs to run: the only one in its image must not act as a kubectl or a kubelet.
func permitted(component string) error {
	data, err := os.ReadFile(programsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read what this image is for: %w", err)
	case !slices.Contains(strings.Fields(string(data)), component):
		return fmt.Errorf("this image is not for %s", component)
	}
	return nil
}
