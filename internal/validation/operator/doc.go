// Package operator validates the objects of operator.gardener.cloud.
//
// All functions are pure: they look at one object, or at an object and its predecessor, and return every error at once, each with the
// path that the user typed. The CustomResourceDefinitions refuse simple mistakes already; here is what they cannot say.
package operator
