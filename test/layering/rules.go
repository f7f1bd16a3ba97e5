// Package layering says which part of the code may import which.
//
// Arrows point down only:
//
//	cmd
//	internal/<process>, landscape     one process never imports another
//	internal/component, validation, kube, ...
//	pkg
//	imagevector, charts, example
//	api                               imports no other room
//
// The rooms hack and test look at everything and are looked at by nobody.
package layering

import (
	"fmt"
	"slices"
	"strings"
)

// sharedRooms are the rooms of internal/ that several processes use. Every other one belongs to a single process.
// Who adds a room here says that it is no process.
var sharedRooms = []string{
	"internal/cloudprofile", // what admission checks, maintenance looks for
	"internal/component",
	"internal/configfile",
	"internal/distribution", // the landscape runs what it builds
	"internal/kube",
	"internal/networkpolicy",  // a controller that gardenlet and gardener-operator run too
	"internal/process",        // how every component starts
	"internal/shoot",          // what gardenlet and gardenadm derive from a Shoot
	"internal/stage",          // what flows of several processes are composed from
	"internal/subcommand",     // how commands that hold others speak
	"internal/tokenrequestor", // a controller that gardenlet runs too
	"internal/validation",
}

// exceptions are imports against the arrows that are wanted all the same. The paths are those of rooms or of packages in them.
var exceptions = []exception{}

// exception lets packages below one path import packages below another.
type exception struct {
	from, to, why string
}

// level is how far up a room is; rooms import what is further down.
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

// room is the part of the house that a package is in.
type room struct {
	path  string
	level level
}

// roomOf returns the room of a package, given by its path within the module ("api/core/v1beta1").
func roomOf(pkg string) (room, error) {
	parts := strings.Split(pkg, "/")
	switch parts[0] {
	case "api":
		return room{"api", api}, nil
	case "imagevector", "charts", "example":
		return room{parts[0], images}, nil
	case "pkg":
		return room{"pkg", library}, nil
	case "landscape":
		return room{"landscape", process}, nil
	case "cmd":
		return room{"cmd", command}, nil
	case "hack", "test":
		return room{parts[0], outside}, nil
	case "internal":
		depth := 2
		if strings.HasPrefix(pkg, "internal/provider/") { // each provider is a process of its own
			depth = 3
		}
		if len(parts) < depth {
			return room{}, fmt.Errorf("%s: code under internal/ has a room of its own, such as internal/gardenlet", pkg)
		}
		path := strings.Join(parts[:depth], "/")
		if slices.Contains(sharedRooms, path) {
			return room{path, shared}, nil
		}
		return room{path, process}, nil
	}
	return room{}, fmt.Errorf("%s: not in the plan of the house; give its room a level in roomOf", pkg)
}

// check returns why a package may not import another, or "" if it may.
func check(from, to string) string {
	importer, err := roomOf(from)
	if err != nil {
		return err.Error()
	}
	imported, err := roomOf(to)
	if err != nil {
		return err.Error()
	}
	switch {
	case importer.level == outside, importer.path == imported.path:
		return ""
	case imported.level == outside:
		return fmt.Sprintf("%s imports %s: nothing that is shipped uses %s/", from, to, imported.path)
	case importer.level == process && imported.level == process:
		return fmt.Sprintf("%s imports %s: two processes never import each other; what both need lives further down", from, to)
	case importer.level < imported.level:
		return fmt.Sprintf("%s imports %s: %s lies below %s", from, to, importer.path, imported.path)
	}
	return ""
}

// covers tells whether an import is the one that an exception is about.
func (e exception) covers(from, to string) bool {
	return within(from, e.from) && within(to, e.to)
}

func within(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}
