/** Takes files that are dropped onto a part of the page. */
import { type DragEvent, useState } from 'react'

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer.types.includes('Files')

/** `props`: for the element; while files are held above it, it has `data-over`. */
export function useDrop(onFiles: (files: File[]) => void) {
  const [isOver, setOver] = useState(false)
  const over = (event: DragEvent) => {
    if (!hasFiles(event)) return
    // Otherwise the browser would open the file in the place of the page.
    event.preventDefault()
    setOver(true)
  }
  return {
    'data-over': isOver || undefined,
    onDragEnter: over,
    onDragOver: over,
    onDragLeave(event: DragEvent) {
      const isInside = event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)
      if (!isInside) setOver(false)
    },
    onDrop(event: DragEvent) {
      setOver(false)
      if (!hasFiles(event)) return
      event.preventDefault()
      onFiles([...event.dataTransfer.files])
    },
  }
}
