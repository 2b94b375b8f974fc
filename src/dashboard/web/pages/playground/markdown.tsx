/**
 * A reply as Markdown. Raw HTML is shown as text, and pictures as links, so that a reply loads nothing.
 * Loaded with the first reply.
 */
import ReactMarkdown from 'react-markdown'
import remarkGfm from 'remark-gfm'

/** Renders the text. */
export function Markdown({ text }: { readonly text: string }) {
  return (
    <div className="markdown stack">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        components={{
          a: ({ href, children }) => (
            <a href={href} target="_blank" rel="noopener noreferrer">
              {children}
            </a>
          ),
          img: ({ src, alt }) => (
            <a href={typeof src === 'string' ? src : undefined} target="_blank" rel="noopener noreferrer">
              {alt === undefined || alt === '' ? 'Picture' : alt}
            </a>
          ),
          // Reached by the keyboard, since they scroll.
          pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
          table: ({ children }) => (
            <div className="markdown-table" tabIndex={0} role="group" aria-label="Table">
              <table>{children}</table>
            </div>
          ),
        }}
      >
        {text}
      </ReactMarkdown>
    </div>
  )
}
