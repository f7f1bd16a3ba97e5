// Package core validates the objects of core.gardener.cloud.
//
// All functions are pure: they check one object, or an object and its old version, and return every error at once,
// each with the path that the user typed. Checks that need other objects are in admission plugins.
package core
