// Package layering checks which part of the code imports which.
//
// Arrows point down only:
//
//	cmd
//	internal/<process>, landscape     one process never imports another
//	internal/component, validation, kube, ...
//	pkg
//	imagevector, charts, example
//	api                               imports no other area
//
// hack and test may import everything, and are not imported.
package layering

import (
	"fmt"
	"slices"
	"strings"
)

// sharedAreas are the directories of internal/ that several processes use. Every other one is the code of a single process.
var sharedAreas = []string{
	"internal/authorizer",   // gardener-admission-controller serves it, gardener-apiserver asks it
	"internal/chart",        // gardenlet and gardener-operator install charts
	"internal/cloudprofile", // checks of admission plugins that maintenance uses too
	"internal/component",
	"internal/configfile",
	"internal/distribution", // the landscape runs its artifacts
	"internal/kube",
	"internal/networkpolicy",  // a controller that gardenlet and gardener-operator run too
	"internal/process",        // the start of every component
	"internal/restriction",    // like internal/authorizer
	"internal/rotation",       // phases of rotations, for Shoots and Gardens
	"internal/shoot",          // functions of a Shoot for gardenlet and gardenadm
	"internal/skew",           // which versions of gardener-operator and gardenlet work together
	"internal/stage",          // stages of flows of several processes
	"internal/subcommand",     // help and errors of commands with subcommands
	"internal/tokenrequestor", // a controller that gardenlet runs too
	"internal/validation",
	"internal/vpaevictionrequirements", // a controller that gardenlet and gardener-operator run
	"internal/wave",                    // gardenctl and gardener-operator upgrade gardenlets
}

// exceptions are allowed imports against the arrows. The paths are those of areas or of packages in them.
var exceptions = []exception{}

// exception lets packages below one path import packages below another.
type exception struct {
	from, to, why string
}

// level is how far up an area is; areas import those further down.
type level int

const (
	api level = iota
	images
	library
	shared
	process
	command
	outside
)

// area is a part of the code: a directory with its packages.
type area struct {
	path  string
	level level
}

// areaOf returns the area of a package, given by its path within the module ("api/core/v1beta1").
func areaOf(pkg string) (area, error) {
	parts := strings.Split(pkg, "/")
	switch parts[0] {
	case "api":
		return area{"api", api}, nil
	case "imagevector", "charts", "example":
		return area{parts[0], images}, nil
	case "pkg":
		return area{"pkg", library}, nil
	case "landscape":
		return area{"landscape", process}, nil
	case "cmd":
		return area{"cmd", command}, nil
	case "hack", "test":
		return area{parts[0], outside}, nil
	case "internal":
		depth := 2
		if strings.HasPrefix(pkg, "internal/provider/") { // each provider is a process of its own
			depth = 3
		}
		if len(parts) < depth {
			return area{}, fmt.Errorf("%s: code under internal/ is in a directory of its own, such as internal/gardenlet", pkg)
		}
		path := strings.Join(parts[:depth], "/")
		if slices.Contains(sharedAreas, path) {
			return area{path, shared}, nil
		}
		return area{path, process}, nil
	}
	return area{}, fmt.Errorf("%s: unknown directory; add it to areaOf", pkg)
}

// check returns why a package may not import another, or "" if it may.
func check(from, to string) string {
	importer, err := areaOf(from)
	if err != nil {
		return err.Error()
	}
	imported, err := areaOf(to)
	if err != nil {
		return err.Error()
	}
	switch {
	case importer.level == outside, importer.path == imported.path:
		return ""
	case imported.level == outside:
		return fmt.Sprintf("%s imports %s: nothing that is shipped uses %s/", from, to, imported.path)
	case importer.level == process && imported.level == process:
		return fmt.Sprintf("%s imports %s: two processes never import each other; move shared code further down", from, to)
	case importer.level < imported.level:
		return fmt.Sprintf("%s imports %s: %s lies below %s", from, to, importer.path, imported.path)
	}
	return ""
}

// covers reports whether an exception allows an import.
func (e exception) covers(from, to string) bool {
	return within(from, e.from) && within(to, e.to)
}

func within(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}
