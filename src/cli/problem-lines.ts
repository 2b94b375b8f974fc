/** Problems of a configuration as lines of a command's output. */
import { relative } from 'node:path'
import { formatProblem, type ConfigProblem } from '../config/config-problem.js'

/** One line for each problem, files named from the working folder. */
export function problemLines(errors: readonly ConfigProblem[]): string {
  return errors.map((problem) => formatProblem({ ...problem, file: relativeName(problem.file) })).join('\n')
}

/** The path from the working folder, if the file is inside it. */
export function relativeName(file: string): string {
  const path = relative(process.cwd(), file)
  return path === '' || path.startsWith('..') ? file : path
}
