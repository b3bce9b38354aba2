# One R package in a process of its own, for convergence.py; see worker.py.
#
#     Rscript worker.R PACKAGE FOLDER THREADS

given <- commandArgs(trailingOnly = TRUE)
package <- given[[1]]
folder <- given[[2]]
threads <- as.integer(given[[3]])
suppressPackageStartupMessages({
  library(Matrix)
  library(package, character.only = TRUE)
})

# The data of a .npy file, version 1.0 of the format, float64 or int32.
read_array <- function(name, what) {
  file <- file(file.path(folder, paste0(name, ".npy")), "rb")
  on.exit(close(file))
  start <- readBin(file, "raw", 10)
  readBin(file, "raw", as.integer(start[[9]]) + 256L * as.integer(start[[10]]))
  size <- if (what == "integer") 4 else 8
  readBin(file, what, n = 2e8, size = size, endian = "little")
}

write_matrix <- function(name, values) {
  text <- sprintf("{'descr': '<f8', 'fortran_order': True, 'shape': (%d, %d), }",
                  nrow(values), ncol(values))
  text <- paste0(text, strrep(" ", 117 - nchar(text)), "\n")
  file <- file(file.path(folder, paste0(name, ".npy")), "wb")
  on.exit(close(file))
  writeBin(as.raw(c(0x93, utf8ToInt("NUMPY"), 1, 0, nchar(text), 0)), file)
  writeBin(charToRaw(text), file)
  writeBin(as.vector(values), file, size = 8, endian = "little")
}

problem <- strsplit(readLines(file.path(folder, "problem.txt")), " ")[[1]]
squared <- problem[[1]] == "frobenius"
rank <- as.integer(problem[[2]])
shape <- read_array("shape", "integer")
values <- read_array("data", "double")
sparse <- file.exists(file.path(folder, "indptr.npy"))
if (sparse) {
  X <- sparseMatrix(j = read_array("indices", "integer") + 1L,
                    p = read_array("indptr", "integer"), x = values, dims = shape)
} else {
  X <- matrix(values, shape[[1]], shape[[2]], byrow = TRUE)
}

solvers <- list()
if (package == "RcppML" && squared) {
  setRcppMLthreads(threads)
  # It stops where a step changes W by less than tol.
  solvers[["RcppML*"]] <- function(k, seed) {
    RcppML::nmf(X, rank, tol = 1e-300, maxit = k, seed = seed + 1L, verbose = FALSE)
  }
  factors <- function(fit) list(fit$w, fit$d * fit$h)
}
# R's NMF has dense matrices only and takes seconds for a step of large ones.
if (package == "NMF" && !sparse && length(X) < 1e6) {
  one <- function(method) {
    force(method)
    function(k, seed) {
      NMF::nmf(X, rank, method, seed = 1000L + seed, maxIter = k, .options = "-p",
               .stop = function(strategy, i, y, x, ...) FALSE)
    }
  }
  for (method in if (squared) "lee" else "brunet") {
    solvers[[paste0("R's NMF ", method, "*")]] <- one(method)
  }
  factors <- function(fit) list(basis(fit), coef(fit))
}

answer <- function(...) {
  cat(..., sep = "\t")
  cat("\n")
  flush(stdout())
}
answer(as.character(packageVersion(package)), paste(names(solvers), collapse = "\t"))
input <- file("stdin", "r")
while (length(line <- readLines(input, 1)) > 0) {
  request <- strsplit(line, "\t")[[1]]
  begin <- Sys.time()
  invisible(capture.output(suppressMessages(
    fit <- solvers[[request[[1]]]](as.integer(request[[2]]), as.integer(request[[3]]))
  )))
  took <- as.numeric(difftime(Sys.time(), begin, units = "secs"))
  found <- factors(fit)
  write_matrix("S", found[[1]])
  write_matrix("A", found[[2]])
  answer(took)
}
