// Package core validates the objects of core.gardener.cloud.
//
// All functions are pure: they look at one object, or at an object and its predecessor, and return every error at once,
// each with the path that the user typed. What needs other objects is a matter of admission plugins.
package core
