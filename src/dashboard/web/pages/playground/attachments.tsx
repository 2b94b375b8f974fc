/** Pictures, PDF files and texts of a message: reads them, limits their size, and lists them. */
import { IconButton } from '../../components/button.js'
import { plural } from '../../format/number.js'
import type { Attachment } from './request-body.js'

/** Of one file, and of all files of a message. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
const MAX_TOTAL_BYTES = 12 * 1024 * 1024
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const TEXTS = /^text\/|^application\/(json|xml|yaml|x-yaml|javascript)$/
const TEXT_NAMES =
  /\.(txt|md|csv|tsv|json|ya?ml|xml|html|css|js|ts|tsx|py|rb|go|rs|java|c|h|sh|sql|log|toml)$/i

/** For the file dialog of the browser. */
export const ACCEPTED = [...IMAGES, 'application/pdf', 'text/*', '.md,.csv,.json,.yaml,.log'].join(',')

/** The files that a message can have, and why the others are left out. */
export async function attach(
  given: readonly File[],
  before: readonly Attachment[],
): Promise<{ readonly files: readonly Attachment[]; readonly error: string | null }> {
  const files: Attachment[] = [...before]
  let error: string | null = null
  let total = before.reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
  for (const file of given) {
    const kind = kindOf(file)
    if (kind === null) {
      error = `${file.name}: only pictures (PNG, JPEG, GIF, WebP), PDF files and texts can be attached.`
    } else if (file.size > MAX_FILE_BYTES || total + file.size > MAX_TOTAL_BYTES) {
      error = `${file.name}: a file may have 4 MB, and all files of a message 12 MB.`
    } else {
      const data = kind === 'text' ? await file.text() : await base64Of(file)
      total += data.length
      files.push({ name: file.name, kind, type: file.type, data })
    }
  }
  return { files, error }
}

function kindOf({ type, name }: File): Attachment['kind'] | null {
  if (IMAGES.includes(type)) return 'image'
  if (type === 'application/pdf') return 'pdf'
  return TEXTS.test(type) || TEXT_NAMES.test(name) ? 'text' : null
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () =>
      resolve((typeof reader.result === 'string' ? reader.result : '').replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error ?? new Error('The file cannot be read.'))
    reader.readAsDataURL(file)
  })
}

interface ListProps {
  readonly files: readonly Attachment[]
  readonly remove?: (file: Attachment) => void
}

/** The files of a message; nothing without any. */
export function AttachmentList({ files, remove }: ListProps) {
  if (files.length === 0) return null
  return (
    <ul className="attachments row" aria-label={plural(files.length, 'file')}>
      {files.map((file, at) => (
        <li key={at} className="attachment panel row line small">
          {file.kind === 'image' && file.data !== null ? (
            <img src={`data:${file.type};base64,${file.data}`} alt="" />
          ) : null}
          <span className="cut" title={file.name}>
            {file.name}
          </span>
          {file.data === null ? (
            <span className="soft">too large to keep over the reload: attach it again</span>
          ) : null}
          {remove === undefined ? null : (
            <IconButton icon="close" label={`Remove ${file.name}`} onClick={() => remove(file)} />
          )}
        </li>
      ))}
    </ul>
  )
}
