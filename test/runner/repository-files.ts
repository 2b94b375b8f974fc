/**
 * The files of the repository, and those that a change touches. Without git, as in an unpacked archive, there
 * are none.
 */
import { spawnSync } from 'node:child_process'

/** The lines that git prints; null if it fails. */
function git(...args: readonly string[]): string[] | null {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8', maxBuffer: 64e6 })
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : null
}

/** All files that are not ignored, from the folder of the project. */
export function repositoryFiles(): readonly string[] {
  return git('ls-files', '--cached', '--others', '--exclude-standard') ?? []
}

/**
 * The paths that differ from where this branch left `main`, or on `main` from the last commit, with files
 * that are not yet in git; null if that is not known, as in a clone of one commit.
 */
export function changedPaths(): readonly string[] | null {
  const head = git('rev-parse', 'HEAD')?.[0]
  const left = git('merge-base', 'HEAD', 'main')?.[0] ?? head
  const changed = git('diff', '--name-only', left === undefined || left === head ? 'HEAD~1' : left)
  const added = git('ls-files', '--others', '--exclude-standard') ?? []
  return changed === null ? null : [...changed, ...added]
}
