/** Writes the two files with the results of a batch, in the order of its lines, and adds up their use. */
import { addUsage, type Usage } from '../../formats/chat/usage.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { Batch } from '../../policy/batch-records.js'
import { plannedLines, type PlannedLine } from './batch-lines.js'
import type { FileStore, FileWriter, StoredFile } from '../../policy/file-store.js'
import type { Journal, LineUse } from './journal.js'
import type { FinishLine } from './run-at-vendor.js'

/** Why lines have no result. */
export interface Missing {
  readonly code: 'batch_expired' | 'batch_cancelled' | 'batch_missing_result'
  readonly message: string
}

/** The files of a batch that has ended, and what it used. */
interface Results {
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly completed: number
  readonly failed: number
  /** Of each part. */
  readonly used: readonly LineUse[]
}

/** From the most to the least certain. */
const SOURCES: readonly UsageSource[] = ['none', 'reported', 'estimated', 'assumed']

/** The sum of what lines used. */
class UseSum {
  usage: Usage = {}
  source: UsageSource = 'none'
  nanoUsd: number | null = 0

  add({ usage, source, nanoUsd }: LineUse): void {
    this.usage = addUsage(this.usage, usage)
    if (SOURCES.indexOf(source) > SOURCES.indexOf(this.source)) this.source = source
    this.nanoUsd = this.nanoUsd === null || nanoUsd === null ? null : this.nanoUsd + nanoUsd
  }
}

/** The lines of a batch, and their results. */
interface Ended {
  readonly files: FileStore
  readonly batch: Batch
  readonly plan: StoredFile
  /** It was opened after the last result. */
  readonly journal: Journal
  /** Translates results; null: they are in the client's format. */
  readonly finish: FinishLine | null
  /** Of lines without a result. */
  readonly missing: Missing
  /** The number of replies that belong to no line. */
  readonly strays: number
  readonly expiresAtMs: number
  /** Called before the first byte of a file. */
  readonly onBegin: (fileId: string) => Promise<void>
}

/** Writes the files. A file without lines is left out. */
export async function writeResults(ended: Ended): Promise<Results> {
  const { files, plan, batch, strays } = ended
  const output = new ResultFile(ended, 'output')
  const errors = new ResultFile(ended, 'error')
  const used = batch.secrets.parts.map(() => new UseSum())
  let largest: LineUse | null = null
  for await (const line of plannedLines(files, plan)) {
    const { text, isOk, use } = await resultOf(line, ended)
    if (use !== null) used[line.part ?? 0]?.add(use)
    await (isOk ? output : errors).write(text)
    if (strays > 0) largest = largerOf(largest, mostOf(line))
  }
  for (let stray = 0; stray < strays && largest !== null; stray += 1) used[0]?.add(largest)
  const [outputFileId, errorFileId] = [await output.end(), await errors.end()]
  return { outputFileId, errorFileId, completed: output.lines, failed: errors.lines, used }
}

/** The maximum of a line; null if it was not sent. */
function mostOf({ most }: PlannedLine): LineUse | null {
  if (most === undefined) return null
  const { input, output, nanoUsd } = most
  return { usage: { input, output }, source: 'assumed', nanoUsd }
}

function largerOf(one: LineUse | null, other: LineUse | null): LineUse | null {
  if (one === null || other === null) return one ?? other
  return (other.nanoUsd ?? 0) > (one.nanoUsd ?? 0) ? other : one
}

/** The line of a file, and what it used. */
interface WrittenResult {
  readonly text: string
  readonly isOk: boolean
  readonly use: LineUse | null
}

async function resultOf(
  line: PlannedLine,
  { batch, journal, missing, finish }: Ended,
): Promise<WrittenResult> {
  const { number, id, refused } = line
  const fallbackId = `${batch.id}-${number}`
  if (refused !== undefined) {
    const reply = { requestId: fallbackId, ...refused }
    return { text: resultText(id, reply, null), isOk: false, use: null }
  }
  const found = await journal.find(number)
  if (found === null) {
    // The upstream may have run it.
    const use = missing.code === 'batch_missing_result' ? mostOf(line) : null
    return { text: resultText(id, { requestId: fallbackId }, missing), isOk: false, use }
  }
  const result = finish === null ? found : await finish(line, found)
  const { error = null, used = null, status } = result
  const isOk = error === null && status < 400
  // The vendor answered, and the present configuration refuses the line before its reply is read.
  const isUnread = !isOk && found.isRaw === true && found.status < 400 && (used?.source ?? 'none') === 'none'
  return { text: resultText(id, result, error), isOk, use: isUnread ? mostOf(line) : used }
}

/** A line of OpenAI's files with results. */
function resultText(
  customId: string,
  reply: { readonly requestId: string; readonly status?: number; readonly body?: string },
  error: { readonly code: string; readonly message: string } | null,
): string {
  const { requestId, status, body } = reply
  const head = `{"id":${JSON.stringify(`batch_req_${requestId}`)},"custom_id":${JSON.stringify(customId)}`
  const response =
    error !== null || status === undefined || body === undefined
      ? 'null'
      : `{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":${onOneLine(body)}}`
  return `${head},"response":${response},"error":${JSON.stringify(error)}}\n`
}

/** JSON has line ends only between its values. */
function onOneLine(json: string): string {
  return json.replaceAll(/[\r\n]+[ \t]*/g, '')
}

/** A file that begins with its first line. */
class ResultFile {
  lines = 0
  private readonly ended: Ended
  private readonly kind: 'output' | 'error'
  private writer: FileWriter | null = null

  constructor(ended: Ended, kind: 'output' | 'error') {
    this.ended = ended
    this.kind = kind
  }

  async write(text: string): Promise<void> {
    this.lines += 1
    this.writer ??= await this.begin()
    await this.writer.write(Buffer.from(text))
  }

  private async begin(): Promise<FileWriter> {
    const { files, batch, expiresAtMs, onBegin } = this.ended
    const name = `${batch.id}_${this.kind}.jsonl`
    const writer = await files.begin(batch, { name, purpose: 'batch_output', expiresAtMs })
    await onBegin(writer.file.id)
    return writer
  }

  /** The id of the file; null if it has no line. */
  async end(): Promise<string | null> {
    return this.writer === null ? null : (await this.writer.end()).id
  }
}
