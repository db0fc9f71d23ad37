// Package seconds folds the series of a trial to what happened when: rates, losses by
// cause, what marks a moment, and when nothing was heard.
//
// A model.Result comes in, a Trial goes out. It draws nothing, and it judges nothing:
// changes are those that were found when the trial was over.
package seconds
