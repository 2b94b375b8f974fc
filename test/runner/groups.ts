/**
 * The processes of a run of the whole suite: most test files have their own, and the small ones of some
 * folders share one.
 */
import { readFileSync } from 'node:fs'

/** What runs in one process. */
export interface Unit {
  readonly name: string
  readonly files: readonly string[]
}

/** Folders below `build/test` whose files are small: starting them costs more than their tests. */
const SHARED = [
  'accounts/',
  'config/',
  'dashboard/server/',
  'edge-cases/',
  'emulator/',
  'formats/',
  'gateway/',
  'ledger/',
  'limits/',
  'native/',
  'observe/',
  'policy/',
  'specification/',
].map((folder) => `build/test/${folder}`)
/** What changes or measures the whole process. */
const ALONE =
  /process\.(?:env\[[^\]]*\] = |chdir|umask|on\(|cpuUsage|memoryUsage|resourceUsage)|delete process\.env|globalThis|monitorEventLoopDelay|node:inspector|\bt\.jobs\b|[pP]riority/
/** So that a group is not the last one to end. */
const MOST_FILES = 16

function mayShare(file: string): boolean {
  return SHARED.some((folder) => file.startsWith(folder)) && !ALONE.test(readFileSync(file, 'utf8'))
}

/** The processes for the files, in their order: a group has its place where its first file is. */
export function inGroups(files: readonly string[]): Unit[] {
  const units: Unit[] = []
  const open = new Map<string, { name: string; files: string[] }>()
  for (const file of files) {
    const folder = mayShare(file) ? SHARED.find((each) => file.startsWith(each)) : undefined
    const group = folder === undefined ? undefined : open.get(folder)
    if (folder !== undefined && group !== undefined && group.files.length < MOST_FILES) {
      group.files.push(file)
      group.name = `${folder} ${String(group.files.length)} files from ${group.files[0] ?? ''}`
      continue
    }
    const unit = { name: file, files: [file] }
    units.push(unit)
    if (folder !== undefined) open.set(folder, unit)
  }
  return units
}
