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

/**
 * Folders below `build/test` whose files share processes, and the most files of one: starting Node and tap,
 * and loading the gateway, takes a second of CPU time, more than most tests take. Files that mostly wait make
 * small groups, so that a group is not the last one to end.
 */
const SHARED: Readonly<Record<string, number>> = {
  'accounts/': 16,
  'architecture/': 32,
  'base/': 32,
  // Beside a gateway the word "emulated" would be masked in their output: it is the key of its upstreams.
  'cli/explain': 8,
  'cli/keys/': 1,
  'cli/': 13,
  'cluster/': 6,
  'config/': 32,
  'conformance/': 16,
  'control/admin/': 10,
  'control/dashboard/api/': 12,
  'control/dashboard/': 16,
  'control/login/': 8,
  'control/sign-in/': 8,
  'dashboard/browser/': 8,
  'deploy/': 4,
  'docs/': 16,
  'edge-cases/': 16,
  'emulator/': 16,
  'examples/': 3,
  'faults/': 9,
  'formats/': 50,
  'gateway/': 32,
  'grafana/': 8,
  'http/': 16,
  'ledger/': 16,
  'limits/': 32,
  'native/': 16,
  'observe/': 16,
  'policy/': 32,
  'process/': 4,
  'properties/': 12,
  'runner/': 4,
  'specification/': 16,
  'store/archive/': 16,
  'store/': 8,
}
const FOLDERS = Object.keys(SHARED).map((folder) => `build/test/${folder}`)
/**
 * What changes or measures the whole process. `group.ts` gives the environment back; the library of Azure
 * keeps where its tokens came from.
 */
const ALONE =
  /process\.(?:chdir|umask|on\(|cpuUsage|memoryUsage|resourceUsage)|globalThis|\{ cache \} = createRequire|monitorEventLoopDelay|TurnWatch|node:inspector|use-azure|IDENTITY_ENDPOINT|AZURE_POD|\bt\.jobs\b|[sg]etPriority/

/** Whether a compiled test file changes or measures its process. */
export function isAlone(file: string): boolean {
  return ALONE.test(readFileSync(file, 'utf8'))
}

/** The folder whose files share a process with this one; undefined if it has its own. */
function sharedFolder(file: string): string | undefined {
  const folder = FOLDERS.find((each) => file.startsWith(each))
  return folder !== undefined && !isAlone(file) ? folder : undefined
}

function mostFiles(folder: string): number {
  return SHARED[folder.replace('build/test/', '')] ?? 1
}

/**
 * The processes for the files, in their order: a group has its place where its first file is. The files for
 * which `isLong` is true have processes of their own.
 */
export function inGroups(files: readonly string[], isLong: (file: string) => boolean): Unit[] {
  const units: Unit[] = []
  const open = new Map<string, { name: string; files: string[] }>()
  for (const file of files) {
    const folder = isLong(file) ? undefined : sharedFolder(file)
    const group = folder === undefined ? undefined : open.get(folder)
    if (folder !== undefined && group !== undefined && group.files.length < mostFiles(folder)) {
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
