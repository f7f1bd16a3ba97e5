// Package extensions validates the objects of extensions.gardener.cloud.
//
// All functions are pure: they check one object, or an object and its old version, and return every error at once, each with the
// path that the user typed. The webhook of the gardener-resource-manager uses them.
package extensions
